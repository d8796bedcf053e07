"""Negatives: the documents that a clicked document is compared with."""

import tensorflow as tf

from keras_lstm_dssm.layers import cosine_matrix, cosine_pairs


def in_batch(
    query: tf.Tensor,
    document: tf.Tensor,
    clicked: tf.Tensor,
    trained: int | None = None,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Uses every other document of the batch as a negative.

    Each distinct document counts once, so that the clicked document is never
    among the negatives, and a frequent document is only one negative.

    Args:
        query: Vectors `(batch, d)`.
        document: Vectors of the distinct documents, `(distinct, d)`: those
            clicked, and the judged or mined negatives of all rows.
        clicked: int `(batch,)`, the row of `document` that was clicked.
        trained: Number of columns that get a gradient, see `cosine_matrix`.

    Returns:
        Cosines, `(batch, distinct)`, and `clicked`, their labels.
    """
    return cosine_matrix(query, document, trained), clicked


def random_negatives(
    query: tf.Tensor,
    document: tf.Tensor,
    clicked: tf.Tensor,
    further: tf.Tensor,
    n: int,
    seed: tf.Tensor,
    all_clicked: tf.Tensor | None = None,
    first_row: tf.Tensor | int = 0,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Draws n negatives for each query, as the paper does (n = 4).

    They are drawn from the clicked documents of the other rows of the batch.
    A shuffled batch is a random sample of the training documents, and so are
    the negatives; no further document has to be encoded.

    Args:
        query: Vectors `(batch, d)`.
        document: Vectors of the distinct documents, `(distinct, d)`.
        clicked: int `(batch,)`, the row of `document` that was clicked.
        further: int `(batch, k)`, rows of `document` that are negatives,
            too (judged or mined); k may be 0.
        n: Number of negatives to draw for each query.
        seed: int32 `(2,)` for `tf.random.stateless_uniform`.
        all_clicked: If the rows are part of a larger batch: like `clicked`,
            for all of it. Default `None`: the rows are all.
        first_row: Index of the first row in that batch. Default 0.

    Returns:
        `(cosines, labels)`, both `(batch, 1 + n + k)`, the clicked document
        first; a negative equal to the clicked document has the label -1.
    """
    all_clicked = clicked if all_clicked is None else all_clicked
    batch = tf.shape(all_clicked)[0]
    # An offset of 1 to batch - 1 never hits the row itself.
    offset = tf.random.stateless_uniform(
        [batch, n], seed, 1, tf.maximum(batch, 2), tf.int32
    )
    rows = (tf.range(batch)[:, tf.newaxis] + offset) % tf.maximum(batch, 1)
    rows = rows[first_row : first_row + tf.shape(clicked)[0]]
    drawn = tf.concat([tf.gather(all_clicked, rows), further], axis=1)
    clicked = clicked[:, tf.newaxis]
    candidates = tf.gather(document, tf.concat([clicked, drawn], axis=1))
    equal = tf.cast(tf.equal(drawn, clicked), query.dtype)
    labels = tf.concat([tf.ones_like(clicked, query.dtype), -equal], axis=1)
    return cosine_pairs(query[:, tf.newaxis, :], candidates), labels


def clicked_is_nearest(cosines: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """Returns for each query whether its clicked document is the nearest.

    Args:
        cosines: Float `(batch, candidates)`.
        labels: The labels of these cosines, see `in_batch` and
            `random_negatives`.

    Returns:
        bool `(batch,)`.
    """
    if labels.shape.rank == 1:
        of_clicked = tf.gather(cosines, labels, batch_dims=1)
        # No document but the clicked one itself is as near.
        near = cosines >= of_clicked[:, tf.newaxis]
        return tf.math.count_nonzero(near, axis=-1) == 1
    best_negative = tf.reduce_max(tf.where(labels == 0, cosines, -2.0), axis=-1)
    of_clicked = tf.reduce_sum(tf.where(labels > 0, cosines, 0.0), axis=-1)
    return of_clicked > best_negative


def log_q_of_distinct(
    log_q: tf.Tensor, candidates: tf.Tensor, distinct: tf.Tensor
) -> tf.Tensor:
    """Collects the log share of clicks of each distinct document.

    In-batch negatives are sampled in proportion to their clicks. Subtracting
    `log_q`, the log of a document's share of the clicks, from the scores
    trains them as if negatives were sampled uniformly (Bengio and Senecal
    2008; Yi et al. 2019, "logQ").

    Args:
        log_q: Float `(batch,)` or `(batch, 1 + k)`: log shares of the clicked
            documents, and of the judged or mined negatives.
        candidates: int `(batch, 1 + k)`: the index of each of these among
            the distinct documents.
        distinct: The number of distinct documents.

    Returns:
        Float `(distinct,)`; 0 for a document without a `log_q`.
    """
    return tf.math.divide_no_nan(*log_q_sums(log_q, candidates, distinct))


def log_q_sums(
    log_q: tf.Tensor, candidates: tf.Tensor, distinct: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Adds the log shares of each distinct document, and counts them.

    Args:
        log_q: See `log_q_of_distinct`.
        candidates: See `log_q_of_distinct`.
        distinct: The number of distinct documents.

    Returns:
        Sums and numbers, both float `(distinct,)`.
    """
    log_q = tf.reshape(log_q, [tf.shape(candidates)[0], -1])
    index = tf.reshape(candidates[:, : tf.shape(log_q)[1]], [-1, 1])
    count = tf.scatter_nd(index, tf.ones([tf.size(index)]), [distinct])
    total = tf.scatter_nd(index, tf.reshape(log_q, [-1]), [distinct])
    return total, count
