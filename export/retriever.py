"""The retriever: query text in, the nearest documents out."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.encoders import TextEncoder
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.documents import (
    VECTORS,
    DocumentVectors,
    check_vectors,
)
from keras_lstm_dssm.export.saved_model import EncoderModule, publish_module
from keras_lstm_dssm.text import as_strings

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


NO_SCORE = -2.0
"""Score of a place beyond a row's own k: below every cosine."""


class RetrieverModule(EncoderModule):
    """A query encoder with the vectors and ids of all documents.

    Args:
        encoder: The trained query encoder.
        ids: String tensor `[n]`.
        vectors: Unit vectors of the documents, `[n, d]`.
        kind: How they are held, `float32` or `int8`.
    """

    def __init__(
        self,
        encoder: TextEncoder,
        ids: tf.Tensor,
        vectors: np.ndarray,
        kind: str = "float32",
    ) -> None:
        super().__init__(encoder)
        self.ids = tf.Variable(ids, trainable=False)
        self.vectors = VECTORS[kind](vectors)

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.string, "text"),
            tf.TensorSpec([None], tf.int32, "k"),
        ]
    )
    def serve(self, text: tf.Tensor, k: tf.Tensor) -> dict[str, tf.Tensor]:
        """Signature `serving_default`.

        `k` has one value a row, because a server that batches requests
        wants the batch as the first dimension of every input.

        Args:
            text: Queries, strings `[batch]`.
            k: int32 `[batch]`, results wanted for each query.

        Returns:
            `ids`, string `[batch, width]`, and `scores`, float32 of the same
            shape, best first; width is the largest k, or the number of
            documents when that is less. Places beyond a row's own k hold ""
            and -2.
        """
        largest = tf.reduce_max(tf.concat([k, [0]], axis=0))
        width = tf.minimum(largest, self.vectors.count)
        scores, places = nearest(self._encode(text), self.vectors, width)
        wanted = tf.range(width) < k[:, tf.newaxis]
        return {
            "ids": tf.where(wanted, tf.gather(self.ids, places), ""),
            "scores": tf.where(wanted, scores, NO_SCORE),
        }


def new_retriever(
    query_encoder: TextEncoder,
    document_encoder: TextEncoder,
    ids: Sequence[str],
    titles: Sequence[str],
    vectors: str = "float32",
    progress: bool = False,
) -> RetrieverModule:
    """Encodes titles into a retriever.

    Args:
        query_encoder: Encodes what is asked.
        document_encoder: Encodes the titles, once, here.
        ids: What the retriever answers with, one for each title.
        titles: The titles.
        vectors: `float32`, or `int8` for a quarter of the memory.
        progress: Whether to show a progress bar.

    Raises:
        InputError: There are no titles, or not as many ids; an id is empty;
            there is no such kind of vectors; a weight is not finite.
    """
    check_vectors(vectors)
    if len(titles) == 0 or len(ids) != len(titles):
        raise InputError(
            f"a retriever needs titles and as many ids; got {len(titles)} "
            f"titles and {len(ids)} ids"
        )
    if not all(ids):  # it would read as a place without a document
        raise InputError(f"id {[*map(bool, ids)].index(False)} is empty")
    return RetrieverModule(
        query_encoder,
        as_strings(ids),
        document_encoder.encode(titles, progress=progress),
        vectors,
    )


def export_retriever(
    query_encoder: TextEncoder,
    document_encoder: TextEncoder,
    ids: Sequence[str],
    titles: Sequence[str],
    base: str | os.PathLike[str],
    version: int | None = None,
    vectors: str = "float32",
) -> Path:
    """Publishes a retriever over the given titles, for TF Serving.

    Args:
        query_encoder: See `new_retriever`, as for `document_encoder`, `ids`,
            `titles` and `vectors`.
        document_encoder: See there.
        ids: See there.
        titles: See there.
        base: The model's folder; the version is a folder in it.
        version: Its number, by default the next free one.
        vectors: See there.

    Returns:
        `base/<number>`.

    Raises:
        InputError: See there; or the version exists already.
    """
    module = new_retriever(
        query_encoder, document_encoder, ids, titles, vectors
    )
    return publish_module(module, base, version)
