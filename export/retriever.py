"""The retriever: query text in, the nearest documents out."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.encoders import TextEncoder
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.saved_model import EncoderModule, publish_module
from keras_lstm_dssm.text import as_strings

NO_SCORE = -2.0
"""Score of a place beyond a row's own k: below every cosine."""


class RetrieverModule(EncoderModule):
    """A query encoder with the vectors and ids of all documents.

    Args:
        encoder: The trained query encoder.
        ids: String tensor `[n]`.
        vectors: Unit vectors of the documents, `[n, d]`.
    """

    def __init__(
        self, encoder: TextEncoder, ids: tf.Tensor, vectors: np.ndarray
    ) -> None:
        super().__init__(encoder)
        # Variables, not constants: a graph is limited to 2 GiB.
        self.ids = tf.Variable(ids, trainable=False, name="ids")
        self.vectors = tf.Variable(vectors, trainable=False, name="vectors")

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
        cosines = tf.matmul(self._encode(text), self.vectors, transpose_b=True)
        largest = tf.reduce_max(tf.concat([k, [0]], axis=0))
        width = tf.minimum(largest, tf.shape(self.vectors)[0])
        scores, places = tf.math.top_k(cosines, width)
        wanted = tf.range(width) < k[:, tf.newaxis]
        return {
            "ids": tf.where(wanted, tf.gather(self.ids, places), ""),
            "scores": tf.where(wanted, scores, NO_SCORE),
        }


def export_retriever(
    query_encoder: TextEncoder,
    document_encoder: TextEncoder,
    ids: Sequence[str],
    titles: Sequence[str],
    base: str | os.PathLike[str],
    version: int | None = None,
) -> Path:
    """Publishes a retriever over the given titles, for TF Serving.

    Args:
        query_encoder: Encodes what is asked.
        document_encoder: Encodes the titles, once, here.
        ids: What the retriever answers with, one for each title.
        titles: The titles.
        base: The model's folder; the version is a folder in it.
        version: Its number, by default the next free one.

    Returns:
        `base/<number>`.

    Raises:
        InputError: There are no titles, or not as many ids; or the version
            exists already.
    """
    if len(titles) == 0 or len(ids) != len(titles):
        raise InputError(
            f"a retriever needs titles and as many ids; got {len(titles)} "
            f"titles and {len(ids)} ids"
        )
    module = RetrieverModule(
        query_encoder,
        as_strings(ids),
        document_encoder.encode(titles),
    )
    return publish_module(module, base, version)
