"""The graph of a retriever: exact search of the documents nearest to queries.

Their vectors are stored as float32 or int8; a search can be restricted to
documents with tags.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.bulk.documents import checked_tags
from keras_lstm_dssm.export.graphs.saved_module import ServedModule, signature
from keras_lstm_dssm.settings import choices
from keras_lstm_dssm.settings.choices import MAX_K
from keras_lstm_dssm.text.strings import as_strings


class DocumentTags(tf.Module):
    """The tags of each of n documents, as variables of a graph.

    A query's tags are compared with all distinct tags once, and then each
    document's numbers are looked up in the result.
    """

    def __init__(self, tags: Sequence[Sequence[str]]) -> None:
        super().__init__()
        encoded = [[t.encode() for t in checked_tags(row)] for row in tags]
        names = sorted({tag for row in encoded for tag in row})
        number = {name: index for index, name in enumerate(names)}
        width = max(map(len, encoded))
        numbers = np.full([len(encoded), width], len(names), np.int32)
        for row, row_tags in enumerate(encoded):
            numbers[row, : len(row_tags)] = [number[tag] for tag in row_tags]
        self._width = width
        # Variables, not constants: a graph is limited to 2 GiB.
        self.names = tf.Variable(tf.constant(names, tf.string), trainable=False)
        self.numbers = tf.Variable(numbers, trainable=False)

    def mask(self, tags: tf.Tensor) -> "TagMask":
        """Returns which documents have any of a query's tags.

        They are strings `[batch]` of tags that are separated by commas, with
        or without white space; "" stands for all documents.
        """
        query_tags = tf.strings.split(tags, ",")
        # The values are compared at once; each belongs to a row of them.
        is_tag = tf.equal(
            tf.strings.strip(query_tags.values)[:, tf.newaxis],
            self.names[tf.newaxis, :],
        )
        batch = tf.shape(tags)[0]
        matched = tf.math.unsorted_segment_max(
            tf.cast(is_tag, tf.int32), query_tags.value_rowids(), batch
        )
        # One more column, of the number that stands for no tag. The maximum
        # of no values is the lowest number.
        has_tag = tf.pad(matched > 0, [[0, 0], [0, 1]])
        any_document = tf.equal(tf.strings.strip(tags), "")[:, tf.newaxis]

        def tag_mask(start: tf.Tensor, stop: tf.Tensor) -> tf.Tensor:
            block = self.numbers[start:stop]
            matching = tf.logical_or(
                any_document, tf.zeros([1, stop - start], tf.bool)
            )
            # One number after the other: [batch, block, w] may be large.
            for column in range(self._width):
                matching |= tf.gather(has_tag, block[:, column], axis=1)
            return matching

        return tag_mask


TagMask = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]
"""Function of the first row of a block of documents and the row after it; it
returns which of them each query may find, booleans `[batch, block]`."""


class Float32Vectors(tf.Module):
    """Stores unit vectors as float32, 4 bytes a number."""

    def __init__(self, vectors: np.ndarray) -> None:
        super().__init__()
        self.count = len(vectors)
        # Variables, not constants: a graph is limited to 2 GiB.
        self.rows = tf.Variable(vectors, trainable=False, dtype=tf.float32)

    def cosines(
        self, queries: tf.Tensor, start: tf.Tensor, stop: tf.Tensor
    ) -> tf.Tensor:
        """Computes the cosines of queries and the rows from start to stop.

        `queries` are unit vectors, float32 `[batch, d]`, `start` and `stop`
        int32 scalars; the cosines are float32 `[batch, stop - start]`.
        """
        rows = self.rows[start:stop]
        return tf.matmul(queries, rows, transpose_b=True)

    def vectors_of(self, rows: tf.Tensor) -> tf.Tensor:
        """Looks up the unit vectors of rows, int32 `[batch, k]`."""
        return tf.gather(self.rows, rows)


class Int8Vectors(tf.Module):
    """Stores vectors as integers from -127 to 127, 1 byte a number.

    `codes` are int8 `[n, d]`, `scales` float32 `[n]`: the largest number of
    each vector becomes 127. Inner products are divided by the length of the
    rounded vector, so that a score is the exact cosine of the query and the
    rounded vector. One scale for each dimension rounds more coarsely: on 53,489
    product titles, recall@10 compared with float32 was 0.980, not 0.993.
    """

    def __init__(self, vectors: np.ndarray) -> None:
        super().__init__()
        codes, scales = int8_codes(vectors)
        self.count = len(codes)
        self.codes = tf.Variable(codes, trainable=False)
        self.scales = tf.Variable(scales, trainable=False)

    def cosines(
        self, queries: tf.Tensor, start: tf.Tensor, stop: tf.Tensor
    ) -> tf.Tensor:
        """See `Float32Vectors.cosines`."""
        # CPU kernels multiply floats only. The floats of one block stay in
        # the cache, so memory is read at 1 byte a number.
        rows = tf.cast(self.codes[start:stop], tf.float32)
        products = tf.matmul(queries, rows, transpose_b=True)
        return products * self.scales[start:stop]

    def vectors_of(self, rows: tf.Tensor) -> tf.Tensor:
        """See `Float32Vectors.vectors_of`."""
        codes = tf.cast(tf.gather(self.codes, rows), tf.float32)
        return codes * tf.gather(self.scales, rows)[..., tf.newaxis]


def int8_codes(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rounds vectors `[n, d]` to integers, each vector on its own scale.

    Returns codes, int8, and scales, float32 `[n]`; `codes * scales` have length
    1.
    """
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    codes = np.rint(vectors * (127 / largest)).astype(np.int8)
    lengths = np.linalg.norm(codes.astype(np.float32), axis=1)
    return codes, 1 / lengths


DocumentVectors = Float32Vectors | Int8Vectors

VECTORS: dict[str, type[DocumentVectors]] = dict(
    zip(choices.VECTORS, (Float32Vectors, Int8Vectors), strict=True)
)
"""Classes by the values of `lstm-dssm-export --vectors`."""


def stored_vectors(vectors: np.ndarray, kind: str) -> DocumentVectors:
    """Stores unit vectors, float32 `[n, d]`; `kind` is a key of `VECTORS`."""
    return VECTORS[kind](vectors)


BLOCK = 16_384
"""Number of documents scored at once: 64 KiB of scores for each query."""

# Two blocks at a time: one is multiplied while another is sorted.
_BLOCKS_AT_ONCE = 2

PADDING_COSINE = -2.0
"""Score in the columns beyond the k of a query; lower than any cosine."""


class GraphModule(Protocol):
    """Protocol of an exported encoder: what is saved of it, and its graph."""

    weights: list[Any]
    resources: list[Any]

    def encode(self, text: tf.Tensor) -> tf.Tensor:
        """Encodes strings `[batch]` into unit vectors `[batch, d]`."""


def best_rows(
    scores_of: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
    queries: tf.Tensor,
    count: int,
    width: tf.Tensor,
    mask: TagMask | None = None,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Finds the documents with the largest scores of all `count`.

    `scores_of` computes the scores of a block, from its first row to the row
    after it, `[batch, block]`. `queries` has a row for each query.

    Block by block the best `width` so far are kept: all scores of a million
    documents and 512 queries would take 2 GB. Returns scores, descending, and
    rows, `[batch, width]`; documents outside the mask last, `PADDING_COSINE`.
    """

    def add_block(
        start: tf.Tensor, scores: tf.Tensor, numbers: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        stop = tf.minimum(start + BLOCK, count)
        cosines = scores_of(start, stop)
        if mask is not None:
            cosines = tf.where(mask(start, stop), cosines, PADDING_COSINE)
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


class DocumentRows(NamedTuple):
    """The encoded documents of a retriever."""

    ids: Sequence[str]
    vectors: Any  # unit vectors, float32 [n, d]; None for BM25 alone
    tags: Sequence[Sequence[str]] = ()  # none if no document has any


def check_retriever_options(vectors: str, max_k: int) -> None:
    """Raises `InputError` for unknown `vectors`, or `max_k` out of range."""
    if vectors not in VECTORS:
        raise InputError(
            f"vectors {vectors!r}: expected one of {', '.join(VECTORS)}"
        )
    if not 1 <= max_k < 2**31:
        raise InputError(f"max_k is {max_k}; expected 1 or more, below 2**31")


class SearchModule(ServedModule):
    """Base of exported modules that search documents.

    A subclass implements the search as `_search`.
    """

    def _set_documents(
        self, ids: Sequence[str], tags: Sequence[Sequence[str]], widest: int
    ) -> None:
        """Stores ids and tags; a query has `widest` results at most.

        If a document has tags, the signature `filtered` searches those with
        some tags only. It is an attribute of the module, since TensorFlow saves
        every signature that a class has. Inputs are those of `serving_default`,
        and `tags`, see `DocumentTags.mask`.
        """
        self.ids = tf.Variable(as_strings(ids), trainable=False)
        self._widest = widest
        if not any(tags):
            return
        self.tags = DocumentTags(tags)

        @signature(text=tf.string, k=tf.int32, tags=tf.string)
        def filtered(
            text: tf.Tensor, k: tf.Tensor, tags: tf.Tensor
        ) -> dict[str, tf.Tensor]:
            return self._search(text, k, tags)

        self.filtered = filtered

    @signature(text=tf.string, k=tf.int32)
    def serve(self, text: tf.Tensor, k: tf.Tensor) -> dict[str, tf.Tensor]:
        """Signature `serving_default`: finds the best documents for queries.

        `text` is strings `[batch]`, `k` the number of results for each, int32
        `[batch]`, because a server that batches requests needs the batch as
        the first dimension of every input.

        `ids` are strings `[batch, width]`, `scores` float32 of the same shape,
        best first. The width is the largest k, but at most `max_k` and the
        number of documents. Columns beyond the k of a row hold "" and -2.
        """
        return self._search(text, k)

    @abstractmethod
    def _search(
        self, text: tf.Tensor, k: tf.Tensor, tags: tf.Tensor | None = None
    ) -> dict[str, tf.Tensor]:
        """Returns the outputs of `serve`, or with tags of `filtered`."""

    def _width(self, k: tf.Tensor) -> tf.Tensor:
        """Returns the largest k of a batch, at most the largest supported."""
        largest = tf.reduce_max(tf.concat([k, [0]], axis=0))
        return tf.minimum(largest, self._widest)


class RetrieverModule(SearchModule):
    """A query encoder with the vectors and ids of all documents.

    A k above `max_k` in a request is reduced to it.
    """

    def __init__(
        self,
        encoder: GraphModule,
        rows: DocumentRows,
        kind: str = "float32",
        max_k: int = MAX_K,
    ) -> None:
        super().__init__()
        self.weights = encoder.weights
        self.resources = encoder.resources
        # A plain function: the module's own signatures are not saved.
        self._encode = encoder.encode
        self.vectors = stored_vectors(rows.vectors, kind)
        widest = min(max_k, self.vectors.count)
        self._set_documents(rows.ids, rows.tags, widest)

    def _search(
        self, text: tf.Tensor, k: tf.Tensor, tags: tf.Tensor | None = None
    ) -> dict[str, tf.Tensor]:
        mask = None if tags is None else self.tags.mask(tags)
        width = self._width(k)
        queries = self._encode(text)
        scores, numbers = best_rows(
            partial(self.vectors.cosines, queries),
            queries,
            self.vectors.count,
            width,
            mask,
        )
        is_result = tf.range(width) < k[:, tf.newaxis]
        if mask is not None:
            is_result &= scores > PADDING_COSINE
        return {
            "ids": tf.where(is_result, tf.gather(self.ids, numbers), ""),
            "scores": tf.where(is_result, scores, PADDING_COSINE),
        }
