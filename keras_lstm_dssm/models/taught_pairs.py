"""teacher_cosines: what a teacher says of the pairs in a hashed batch."""

import tensorflow as tf


def teacher_cosines(
    vectors: tf.Tensor,
    numbers: tf.Tensor,
    text_index: tf.Tensor,
    distinct: tf.Tensor,
) -> tf.Tensor:
    """Computes a teacher's cosines of a batch's rows with its distinct titles.

    A row's own text is the one that the teacher has encoded for its query:
    the query, or the title from which a synthetic query was made.

    Args:
        vectors: Float `(batch, 2 + k, d)`, the teacher's unit vectors of the
            row's own text, of the clicked title, and of k further titles.
        numbers: int32 of shape `(batch, 2 + k)`, equal for equal texts only;
            -1 for a text that the teacher does not know.
        text_index: int32 `(batch * (1 + k),)`, the index of each title among
            the distinct ones: the clicked titles first, then the further ones
            of each row.
        distinct: Number of distinct texts, some of which may be no title.

    Returns:
        `(batch, distinct)`, with -inf where the title is the row's own text,
        where the teacher does not know the title or the row's text, and for
        texts that are no title of the batch.
    """
    dimension = tf.shape(vectors)[2]
    titles = tf.concat(
        [vectors[:, 1], tf.reshape(vectors[:, 2:], [-1, dimension])], axis=0
    )
    title_numbers = tf.concat(
        [numbers[:, 1], tf.reshape(numbers[:, 2:], [-1])], axis=0
    )
    # Titles that the model cannot distinguish are one: the last known counts.
    known = title_numbers >= 0
    last = tf.math.unsorted_segment_max(
        tf.where(known, tf.range(tf.size(text_index)), -1), text_index, distinct
    )
    of_distinct = tf.gather(title_numbers, tf.maximum(last, 0))
    of_distinct = tf.where(last < 0, -1, of_distinct)
    own = numbers[:, :1]
    clicked = text_index[: tf.shape(numbers)[0], tf.newaxis]
    is_own = tf.equal(own, of_distinct) | (
        tf.equal(own, numbers[:, 1:2])
        & tf.equal(clicked, tf.range(distinct)[tf.newaxis])
    )
    left_out = is_own | (own < 0) | (of_distinct < 0)
    cosines = tf.matmul(
        vectors[:, 0], tf.gather(titles, tf.maximum(last, 0)), transpose_b=True
    )
    nothing = tf.constant(-float("inf"), cosines.dtype)
    return tf.where(left_out, nothing, cosines)
