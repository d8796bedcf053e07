"""The graph of a retriever: from queries to the nearest documents."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.document_vectors import VECTORS, DocumentVectors
from keras_lstm_dssm.export.encoder import EncoderModule, GraphEncoder
from keras_lstm_dssm.export.input_ranks import vectors_only
from keras_lstm_dssm.export.keyvec import KeyVecModule
from keras_lstm_dssm.export.retriever_details import RetrieverDetails
from keras_lstm_dssm.models import KeyVec
from keras_lstm_dssm.settings.choices import MAX_K

BLOCK = 16_384
"""Number of documents scored at once: 64 KiB of scores for each query."""

# Two blocks at a time: one is multiplied while another is sorted.
_BLOCKS_AT_ONCE = 2

NO_SCORE = -2.0
"""Score in the columns beyond a query's own k; lower than any cosine."""


class GraphModule(Protocol):
    """Protocol of an exported encoder: what is saved, and its function."""

    weights: list[Any]
    resources: list[Any]

    def encode(self, text: tf.Tensor) -> tf.Tensor:
        """Encodes strings `[batch]` into unit vectors `[batch, d]`."""


Allowed = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]
"""From the rows of a block of documents to booleans `[batch, block]`."""


def nearest(
    queries: tf.Tensor,
    documents: DocumentVectors,
    width: tf.Tensor,
    allowed: Allowed | None = None,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Finds the documents with the largest cosines, by exact search.

    The documents are compared block by block, and only the best `width` of
    all blocks so far are kept. The matrix `[batch, n]` of all scores is never
    computed: a million documents and 512 queries would take 2 GB.

    Args:
        queries: Unit vectors, float32 `[batch, d]`.
        documents: The vectors of n documents.
        width: Number of documents to return, an int32 scalar from 0 to n.
        allowed: Which documents each query may find, by the first row of a
            block and the row after it; by default all.

    Returns:
        Scores, float32 `[batch, width]`, descending, and the rows of the
        documents, int32 of the same shape. Of documents with equal scores
        the one with the lower row comes first. Documents that are not
        allowed come last, with the score `NO_SCORE`.
    """
    count = documents.count

    def add_block(
        start: tf.Tensor, scores: tf.Tensor, numbers: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        stop = tf.minimum(start + BLOCK, count)
        cosines = documents.cosines(queries, start, stop)
        if allowed is not None:
            cosines = tf.where(allowed(start, stop), cosines, NO_SCORE)
        block_scores, columns = tf.math.top_k(
            cosines, tf.minimum(width, stop - start)
        )
        # `top_k` returns equal scores in order, so earlier blocks come first.
        scores = tf.concat([scores, block_scores], axis=1)
        numbers = tf.concat([numbers, start + columns], axis=1)
        scores, best = tf.math.top_k(
            scores, tf.minimum(width, tf.shape(scores)[1])
        )
        return stop, scores, tf.gather(numbers, best, batch_dims=1)

    batch = tf.shape(queries)[0]
    _, scores, numbers = tf.while_loop(
        lambda start, *_: start < count,
        add_block,
        [0, tf.zeros([batch, 0]), tf.zeros([batch, 0], tf.int32)],
        shape_invariants=[
            tf.TensorShape([]),
            tf.TensorShape([None, None]),
            tf.TensorShape([None, None]),
        ],
        parallel_iterations=_BLOCKS_AT_ONCE,
    )
    return scores, numbers


class RetrieverModule(tf.Module):
    """A query encoder with the vectors and ids of all documents.

    Args:
        encoder: The trained query encoder, or the KeyVec that encodes both
            queries and documents; float32 or float64; or the module of one.
        ids: Ids of the documents, string tensor `[n]`.
        vectors: Unit vectors of the documents, float32 `[n, d]`, or what
            stores them.
        kind: How the vectors are stored, a key of `VECTORS`.
        max_k: Maximum number of results for a query. A larger k in a request
            is reduced to it, so that no request can make the server sort and
            send an unlimited number of documents.

    Attributes:
        details: What a later refresh compares with, written beside the
            SavedModel; `None` for a retriever that cannot be refreshed.
    """

    def __init__(
        self,
        encoder: GraphEncoder | KeyVec | GraphModule,
        ids: tf.Tensor,
        vectors: np.ndarray | DocumentVectors,
        kind: str = "float32",
        max_k: int = MAX_K,
    ) -> None:
        super().__init__()
        module = encoder_module(encoder)
        self.details: RetrieverDetails | None = None
        self.weights = module.weights
        self.resources = module.resources
        # A plain function: the module's own signatures are not saved.
        self._encode = module.encode
        self.ids = tf.Variable(ids, trainable=False)
        self.vectors = (
            VECTORS[kind](vectors)
            if isinstance(vectors, np.ndarray)
            else vectors
        )
        self._widest = min(max_k, self.vectors.count)

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.string, "text"),
            tf.TensorSpec([None], tf.int32, "k"),
        ]
    )
    @vectors_only
    def serve(self, text: tf.Tensor, k: tf.Tensor) -> dict[str, tf.Tensor]:
        """Finds the nearest documents; the signature `serving_default`.

        `k` has one value for each query, because a server that batches
        requests needs the batch as the first dimension of every input.

        Args:
            text: Queries, strings `[batch]`.
            k: Number of results for each query, int32 `[batch]`.

        Returns:
            `ids`, string `[batch, width]`, and `scores`, float32 of the same
            shape, best first. The width is the largest k, but at most
            `max_k` and at most the number of documents. Columns beyond a
            row's own k hold "" and -2.
        """
        return self._search(text, k, None)

    def _search(
        self, text: tf.Tensor, k: tf.Tensor, allowed: Allowed | None
    ) -> dict[str, tf.Tensor]:
        largest = tf.reduce_max(tf.concat([k, [0]], axis=0))
        width = tf.minimum(largest, self._widest)
        scores, numbers = nearest(
            self._encode(text), self.vectors, width, allowed
        )
        wanted = tf.range(width) < k[:, tf.newaxis]
        if allowed is not None:
            wanted &= scores > NO_SCORE
        return {
            "ids": tf.where(wanted, tf.gather(self.ids, numbers), ""),
            "scores": tf.where(wanted, scores, NO_SCORE),
        }


def encoder_module(encoder: GraphEncoder | KeyVec | GraphModule) -> Any:
    """Returns the module of an encoder; a module is returned as it is."""
    if isinstance(encoder, KeyVec):
        return KeyVecModule(encoder)
    trained: Any = encoder
    is_module = not hasattr(trained, "unit_vectors")
    return trained if is_module else EncoderModule(trained)


def check_documents(ids: Sequence[str], titles: Sequence[Any]) -> None:
    """Checks that there are documents, each with an id.

    Raises:
        InputError: There are none, or another number of ids; an id is empty.
    """
    if len(titles) == 0 or len(ids) != len(titles):
        raise InputError(
            f"a retriever needs titles and as many ids; got {len(titles)} "
            f"titles and {len(ids)} ids"
        )
    if not all(ids):  # "" fills the columns beyond a query's own k
        raise InputError(f"id {[*map(bool, ids)].index(False)} is empty")


def check_retriever_options(vectors: str, max_k: int) -> None:
    """Checks that `vectors` is a key of `VECTORS`, and `max_k` an int32 >= 1.

    Raises:
        InputError: One of them is not.
    """
    if vectors not in VECTORS:
        raise InputError(
            f"vectors {vectors!r}: expected one of {', '.join(VECTORS)}"
        )
    if not 1 <= max_k < 2**31:
        raise InputError(f"max_k is {max_k}; expected 1 or more, below 2**31")
