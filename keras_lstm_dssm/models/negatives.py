"""Which documents a query's clicked one is compared with."""

import tensorflow as tf

from keras_lstm_dssm.layers import cosine_matrix, cosine_pairs


def in_batch(
    query: tf.Tensor, document: tf.Tensor, clicked: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Takes every other document of the batch as a negative.

    Each distinct document counts once, so one that is equal to the clicked
    one is never among the negatives, and a popular one not many times.

    Args:
        query: Vectors `(batch, d)`.
        document: Vectors of the distinct documents, `(distinct, d)`.
        clicked: int `(batch,)`, the place of each row's clicked document.

    Returns:
        `(cosines, labels)`, both `(batch, distinct)`; labels are 1 for the
        clicked document and 0 for the negatives.
    """
    labels = tf.one_hot(clicked, tf.shape(document)[0], dtype=query.dtype)
    return cosine_matrix(query, document), labels


def random_negatives(
    query: tf.Tensor,
    document: tf.Tensor,
    clicked: tf.Tensor,
    n: int,
    seed: tf.Tensor,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Draws n negatives for each query, as the paper does (n = 4).

    They are drawn from the clicked documents of the batch's other rows. A
    shuffled batch is itself a random draw of the training documents, so the
    negatives are too, and no document has to be encoded for them.

    Args:
        query: Vectors `(batch, d)`.
        document: Vectors of the distinct documents, `(distinct, d)`.
        clicked: int `(batch,)`, the place of each row's clicked document.
        n: Negatives a query.
        seed: int32 `(2,)` for `tf.random.stateless_uniform`.

    Returns:
        `(cosines, labels)`, both `(batch, 1 + n)`, the clicked document
        first; a draw equal to the clicked document has the label -1.
    """
    batch = tf.shape(clicked)[0]
    # An offset of 1 to batch - 1 never hits the row itself.
    offset = tf.random.stateless_uniform(
        [batch, n], seed, 1, tf.maximum(batch, 2), tf.int32
    )
    rows = (tf.range(batch)[:, tf.newaxis] + offset) % tf.maximum(batch, 1)
    drawn = tf.gather(clicked, rows)
    clicked = clicked[:, tf.newaxis]
    candidates = tf.gather(document, tf.concat([clicked, drawn], axis=1))
    equal = tf.cast(tf.equal(drawn, clicked), query.dtype)
    labels = tf.concat([tf.ones_like(clicked, query.dtype), -equal], axis=1)
    return cosine_pairs(query[:, tf.newaxis, :], candidates), labels
