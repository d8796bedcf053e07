"""The k nearest documents, exact, in blocks that fit into memory."""

import tensorflow as tf

from keras_lstm_dssm.export.document_vectors import DocumentVectors

BLOCK = 16_384
"""Documents multiplied at once: 64 KiB of scores for each query."""

# Two blocks under way: one is multiplied while another is sorted.
_BLOCKS_AT_ONCE = 2


def nearest(
    queries: tf.Tensor,
    documents: DocumentVectors,
    width: tf.Tensor,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Finds the documents of the largest cosines.

    The `[batch, n]` matrix of all scores is never made: a million documents
    would give 2 GB of them for 512 queries. Each block leaves its best, and
    the best of those are carried along.

    Args:
        queries: Unit vectors, float32 `[batch, d]`.
        documents: n of them.
        width: How many are wanted, a scalar from 0 to n.

    Returns:
        Scores, float32 `[batch, width]`, descending, and places of the
        documents, int32; of equal scores the first document's comes first.
    """
    count = documents.count

    def block(
        start: tf.Tensor, scores: tf.Tensor, places: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        stop = tf.minimum(start + BLOCK, count)
        new, columns = tf.math.top_k(
            documents.cosines(queries, start, stop),
            tf.minimum(width, stop - start),
        )
        # Behind those found before: `top_k` prefers the first of equals.
        scores = tf.concat([scores, new], axis=1)
        places = tf.concat([places, start + columns], axis=1)
        scores, kept = tf.math.top_k(
            scores, tf.minimum(width, tf.shape(scores)[1])
        )
        return stop, scores, tf.gather(places, kept, batch_dims=1)

    batch = tf.shape(queries)[0]
    _, scores, places = tf.while_loop(
        lambda start, *_: start < count,
        block,
        [0, tf.zeros([batch, 0]), tf.zeros([batch, 0], tf.int32)],
        shape_invariants=[
            tf.TensorShape([]),
            tf.TensorShape([None, None]),
            tf.TensorShape([None, None]),
        ],
        parallel_iterations=_BLOCKS_AT_ONCE,
    )
    return scores, places
