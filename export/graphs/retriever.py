"""The graph of a retriever: exact nearest-neighbour search of documents."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_text as tf_text

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.bulk.documents import (
    DocumentRows,
    Documents,
    check_documents,
    checked_tags,
)
from keras_lstm_dssm.export.bulk.parts import EncodedParts
from keras_lstm_dssm.export.graphs.request_limits import (
    refuse_long_titles,
    refuse_many_hits,
)
from keras_lstm_dssm.export.graphs.saved_module import (
    IDS_FILE,
    EncodingModule,
    Graphs,
    ServedModule,
    signature,
)
from keras_lstm_dssm.fingerprints import id_hashes
from keras_lstm_dssm.settings import fields
from keras_lstm_dssm.settings.fields import MAX_K
from keras_lstm_dssm.text.word_hashing import as_strings
from lstm_dssm_client.signatures import tag_name

_CODED_ROWS = 512
_TOO_MANY_TAGS = 127  # no document has as many (`MAX_TAGS`); fits into int8


class DocumentTags(tf.Module):
    """Stores documents' tags as numbers.

    The number of a tag is its index in a list of all tags that is sorted by
    `tag_name`. Tags with one name, such as "size:1" and "size:2", therefore
    have adjacent numbers.
    """

    def __init__(self, tags: Sequence[Sequence[str]]) -> None:
        super().__init__()
        encoded = [[t.encode() for t in checked_tags(row)] for row in tags]
        raw = sorted({tag for row in encoded for tag in row})
        forms = tf_text.normalize_utf8(tf.constant(raw, tf.string), "NFC")
        composed = dict(zip(raw, forms.numpy().tolist(), strict=True))
        distinct = sorted(
            {*composed.values()}, key=lambda tag: (tag_name(tag), tag)
        )
        names = [*map(tag_name, distinct)]
        name_numbers = {name: row for row, name in enumerate(sorted({*names}))}
        tag_numbers = {tag: index for index, tag in enumerate(distinct)}
        width = max(map(len, encoded))
        numbers = np.full([len(encoded), width], len(distinct), np.int32)
        for row, row_tags in enumerate(encoded):
            # A document can have one tag in two forms of Unicode.
            row_numbers = sorted({tag_numbers[composed[t]] for t in row_tags})
            numbers[row, : len(row_numbers)] = row_numbers
        self._width = width
        self._count = len(distinct)
        self._table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(
                tf.constant(distinct, tf.string),
                tf.range(len(distinct), dtype=tf.int32),
            ),
            default_value=len(distinct),
        )
        # Constants would be part of the graph, which is limited to 2 GiB.
        self.numbers = tf.Variable(numbers, trainable=False)
        self.names = tf.Variable(distinct, trainable=False)
        counts = np.bincount(numbers.ravel(), minlength=len(distinct) + 1)
        self.counts = tf.Variable(np.int32(counts[:-1]), trainable=False)
        self._groups = len(name_numbers)
        # Tags with one name are a group. Item i is the group of tag i. The last
        # item is for the number `len(distinct)`: "no tag" or "unknown tag".
        self.group_of = tf.Variable(
            [*(name_numbers[name] for name in names), self._groups],
            trainable=False,
            dtype=tf.int32,
        )

    def mask(self, tags: tf.Tensor) -> "TagMask":
        """Returns a function that finds the documents with a query's tags.

        `tags`, strings `[batch]`, are the tags of each query, with commas
        between them. A query with the tags "" finds all documents. If several
        tags of a query have the same `tag_name`, a document must have one of
        them. A query with an unknown tag finds no document.
        """
        query_tags = tf.strings.split(tf_text.normalize_utf8(tags, "NFC"), ",")
        values = tf.strings.strip(query_tags.values)
        is_tag = values != ""
        numbers = self._table.lookup(tf.boolean_mask(values, is_tag))
        rows = tf.cast(query_tags.value_rowids(), tf.int32)
        rows = tf.boolean_mask(rows, is_tag)
        batch = tf.shape(tags)[0]

        def occur(numbers: tf.Tensor, count: int) -> tf.Tensor:
            """Returns, for each query, which numbers below `count` occur."""
            occurs = tf.math.unsorted_segment_max(
                tf.ones_like(numbers), rows * count + numbers, batch * count
            )
            # The maximum of an empty segment is negative.
            return tf.reshape(occurs > 0, [batch, count])

        # The last column stands for unknown tags.
        has_tag = occur(numbers, self._count + 1)
        groups = occur(tf.gather(self.group_of, numbers), self._groups + 1)
        needed = tf.reduce_sum(tf.cast(groups, tf.int32), 1)
        needed = tf.minimum(needed, _TOO_MANY_TAGS)
        needed = tf.where(has_tag[:, -1], _TOO_MANY_TAGS, needed)
        needed = tf.cast(needed, tf.int8)[:, tf.newaxis]
        has_tag &= tf.range(self._count + 1) < self._count

        def tag_mask(start: tf.Tensor, stop: tf.Tensor) -> tf.Tensor:
            block = self.numbers[start:stop]
            names = tf.gather(self.group_of, block)
            count = tf.zeros([batch, stop - start], tf.int8)
            has_name = tf.zeros([batch, stop - start], tf.bool)
            # Loops over columns: a tensor [batch, block, width] may be large.
            for column in range(self._width):
                if column:  # several matches of one name count once
                    has_name &= names[:, column] == names[:, column - 1]
                matches = tf.gather(has_tag, block[:, column], axis=1)
                count += tf.cast(matches & ~has_name, tf.int8)
                has_name |= matches
            return tf.equal(count, needed)

        return tag_mask


TagMask = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]
"""Function from the start and the end of a block of documents to booleans
`[batch, block]`: whether each query may find each document."""


class EqualVectors(NamedTuple):
    """Sorts documents so that documents with equal vectors are adjacent."""

    # The last bits of a cosine depend on the row of the document's vector in
    # the multiplied matrix. Equal vectors therefore become one row, so that
    # their documents have equal scores. The rows are the distinct vectors,
    # sorted by the index of the first document with the vector.
    order: np.ndarray  # the document at each position, integers [n]
    vector_of: np.ndarray  # index of each position's distinct vector, int32 [n]
    first: np.ndarray  # the first document with each distinct vector

    @classmethod
    def find(cls, vectors: np.ndarray) -> "EqualVectors":
        """Finds equal rows of a float array `[n, d]`."""
        keys = np.array([hash(row.tobytes()) for row in vectors], np.int64)
        _, first, key = np.unique(keys, return_index=True, return_inverse=True)
        order = np.argsort(first[key], kind="stable")
        # Vectors with equal hashes may differ, so they are compared.
        is_new = np.ones(len(vectors), bool)
        same_key = 1 + np.flatnonzero(keys[order[1:]] == keys[order[:-1]])
        before, after = order[same_key - 1], order[same_key]
        for part in np.array_split(
            np.arange(len(same_key)), 1 + len(same_key) // BLOCK
        ):
            pairs = vectors[before[part]] == vectors[after[part]]
            is_new[same_key[part]] = ~pairs.all(axis=1)
        vector_of = np.cumsum(is_new, dtype=np.int32) - np.int32(1)
        return cls(order, vector_of, order[is_new])


class StoredVectors:
    """The distinct unit vectors of documents, as a retriever stores them."""

    def __init__(self, vectors: np.ndarray, kind: str) -> None:
        self.equal = EqualVectors.find(vectors)
        if len(self.equal.first) < len(vectors):
            vectors = vectors[self.equal.first]
        # The keys are the names of the arrays in a file for `LocalModel`.
        self.arrays = {"vectors": vectors}
        if kind == "int8":
            codes, scales = int8_codes(vectors)
            self.arrays = {"vectors": codes, "vectors.scales": scales}


class DocumentVectors(tf.Module):
    """Base class: stores vectors in a graph, and computes cosines."""

    def __init__(self, stored: StoredVectors) -> None:
        super().__init__()
        vector_of = stored.equal.vector_of
        self.count = len(vector_of)
        self.edges = block_edges(vector_of)
        self._shared = len(stored.equal.first) < self.count
        if self._shared:
            self.vector_of = tf.Variable(vector_of, trainable=False)
        self._store(*stored.arrays.values())

    @abstractmethod
    def _store(self, *arrays: np.ndarray) -> None:
        """Stores arrays as variables; constants have a limit of 2 GiB."""

    @abstractmethod
    def _cosines(
        self, queries: tf.Tensor, start: tf.Tensor, stop: tf.Tensor
    ) -> tf.Tensor:
        """Computes the cosines of queries with a range of distinct vectors."""

    @abstractmethod
    def _distinct(self, rows: tf.Tensor) -> tf.Tensor:
        """Returns the distinct vectors `rows`, float32."""

    def cosines(
        self, queries: tf.Tensor, start: tf.Tensor, stop: tf.Tensor
    ) -> tf.Tensor:
        """Returns cosines of queries with documents `start` to `stop - 1`."""
        if not self._shared:
            return self._cosines(queries, start, stop)
        rows = self.vector_of[start:stop]
        cosines = self._cosines(queries, rows[0], rows[-1] + 1)
        return tf.gather(cosines, rows - rows[0], axis=1)

    def vectors_of(self, documents: tf.Tensor) -> tf.Tensor:
        """Returns the unit vectors of documents, `[..., d]`."""
        if self._shared:
            documents = tf.gather(self.vector_of, documents)
        return self._distinct(documents)


class Float32Vectors(DocumentVectors):
    """Stores unit vectors as float32."""

    def _store(self, *arrays: np.ndarray) -> None:
        (vectors,) = arrays
        self.rows = tf.Variable(vectors, trainable=False, dtype=tf.float32)

    def _cosines(
        self, queries: tf.Tensor, start: tf.Tensor, stop: tf.Tensor
    ) -> tf.Tensor:
        return tf.matmul(queries, self.rows[start:stop], transpose_b=True)

    def _distinct(self, rows: tf.Tensor) -> tf.Tensor:
        return tf.gather(self.rows, rows)


class Int8Vectors(DocumentVectors):
    """Stores each vector as int8 codes and a scale, see `int8_codes`."""

    def _store(self, *arrays: np.ndarray) -> None:
        codes, scales = arrays
        self.codes = tf.Variable(codes, trainable=False)
        self.scales = tf.Variable(scales, trainable=False)

    def _cosines(
        self, queries: tf.Tensor, start: tf.Tensor, stop: tf.Tensor
    ) -> tf.Tensor:
        # CPU kernels multiply only floats. The floats of a block stay in the
        # cache, and only the int8 codes are read from memory.
        rows = tf.cast(self.codes[start:stop], tf.float32)
        products = tf.matmul(queries, rows, transpose_b=True)
        return products * self.scales[start:stop]

    def _distinct(self, rows: tf.Tensor) -> tf.Tensor:
        codes = tf.cast(tf.gather(self.codes, rows), tf.float32)
        return codes * tf.gather(self.scales, rows)[..., tf.newaxis]


def int8_codes(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rounds vectors `[n, d]` to int8.

    Returns codes, int8 `[n, d]`, and scales, float32 `[n]`. The codes in row i,
    multiplied by scale i, are a unit vector.
    """
    codes = np.empty(vectors.shape, np.int8)
    lengths = np.empty(len(vectors), np.float32)
    # `_CODED_ROWS` rows fit into the cache. Without this loop, NumPy would
    # make three copies of all vectors.
    for start in range(0, len(vectors), _CODED_ROWS):
        rows = slice(start, start + _CODED_ROWS)
        largest = np.abs(vectors[rows]).max(axis=1, keepdims=True)
        largest[largest == 0] = 1
        rounded = np.rint(vectors[rows] * (127 / largest))
        codes[rows] = rounded
        lengths[rows] = np.linalg.norm(rounded, axis=1)
    lengths[lengths == 0] = 1
    return codes, 1 / lengths


VECTORS: dict[str, type[DocumentVectors]] = dict(
    zip(fields.VECTORS, (Float32Vectors, Int8Vectors), strict=True)
)
"""Value of `lstm-dssm-export --vectors` -> class."""

BLOCK = 16_384
"""Number of documents scored at once: 64 KiB of scores for each query."""


def block_edges(vector_of: np.ndarray) -> np.ndarray:
    """Divides documents into blocks of at most `BLOCK` documents.

    Returns the edges: block i has the documents from `edges[i]` to
    `edges[i + 1] - 1`. Documents that share a vector are in one block, so that
    their scores are equal. If more than `BLOCK` documents share a vector, they
    get several blocks of their own. `vector_of` is ascending, see
    `EqualVectors`.
    """
    count = len(vector_of)
    starts = np.flatnonzero(np.diff(vector_of, prepend=-1))
    starts = np.append(starts, count)
    edges = [0]
    while edges[-1] < count:
        limit = min(edges[-1] + BLOCK, count)
        last = starts[np.searchsorted(starts, limit, "right") - 1]
        first = starts[np.searchsorted(starts, edges[-1])]
        if first > edges[-1]:  # the previous block ended between equal vectors
            last = min(first, limit)
        edges.append(int(last) if last > edges[-1] else limit)
    return np.array(edges, np.int32)


# One block is multiplied while another block is sorted.
_BLOCKS_AT_ONCE = 2

PADDING_COSINE = -2.0
"""Score in the columns that have no document; lower than any cosine."""

MASKED = float(np.finfo(np.float32).min)
"""Score of a document that lacks the tags of the query."""


def best_rows(
    # Start and stop of a block -> scores `[batch, stop - start]`.
    scores_of: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
    queries: tf.Tensor,
    edges: np.ndarray,  # see `block_edges`
    width: tf.Tensor,
    mask: TagMask | None = None,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the best documents' scores and indices, both `[batch, width]`."""

    def add_block(
        block: tf.Tensor, scores: tf.Tensor, numbers: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        start, stop = tf.gather(edges, block), tf.gather(edges, block + 1)
        block_scores = scores_of(start, stop)
        if mask is not None:
            block_scores = tf.where(mask(start, stop), block_scores, MASKED)
        block_scores, columns = tf.math.top_k(
            block_scores, tf.minimum(width, stop - start)
        )
        # `top_k` keeps the order of equal scores. Results of earlier blocks are
        # in the first columns, so documents with equal scores stay in order.
        scores = tf.concat([scores, block_scores], axis=1)
        numbers = tf.concat([numbers, start + columns], axis=1)
        scores, best = tf.math.top_k(
            scores, tf.minimum(width, tf.shape(scores)[1])
        )
        return block + 1, scores, tf.gather(numbers, best, batch_dims=1)

    batch = tf.shape(queries)[0]
    # The loop needs no tensor of all scores: for a million documents and 512
    # queries, this tensor would have 2 GB.
    _, scores, numbers = tf.while_loop(
        lambda block, *_: block < len(edges) - 1,
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


class SearchModule(ServedModule):
    """Base class of exported modules that search documents."""

    vectors: DocumentVectors
    stored: StoredVectors | None = None

    def _set_vectors(self, rows: DocumentRows, kind: str, max_k: int) -> None:
        self.stored = StoredVectors(rows.vectors, kind)
        self.vectors = VECTORS[kind](self.stored)
        self._set_documents(rows, self.stored.equal.order, max_k)

    def _set_documents(
        self, rows: DocumentRows, order: Iterable[int], max_k: int
    ) -> None:
        """Stores ids, titles and tags; document `order[i]` gets position i."""
        ids, titles, tags = (
            [column[i] for i in order] if column else []
            for column in (rows.ids, rows.titles, rows.tags)
        )
        self._widest = min(max_k, len(ids))
        self.ids = tf.Variable(as_strings(ids), trainable=False)
        sizes = tf.strings.length(self.ids)
        if titles:
            self.titles = (
                tf.Variable(as_strings(titles), trainable=False)
                if titles != ids
                else self.ids
            )
            sizes += tf.strings.length(self.titles)
        largest = np.sort(sizes.numpy())[::-1][: self._widest]
        self.longest = tf.Variable(
            np.cumsum([0, *largest], dtype=np.int64), trainable=False
        )
        if not any(tags):
            return
        self.tags = DocumentTags(tags)

        # Defined here, because only retrievers with tags have these signatures.
        @signature(text=tf.string, k=tf.int32, tags=tf.string)
        def filtered(
            text: tf.Tensor, k: tf.Tensor, tags: tf.Tensor
        ) -> dict[str, tf.Tensor]:
            return self._search(text, k, tags)

        @signature(text=tf.string)
        def known_tags(text: tf.Tensor) -> dict[str, tf.Tensor]:
            count = int(self.tags.names.shape[0])
            text, _ = refuse_many_hits(
                text, tf.constant(count), count, "number of tags"
            )
            rows = tf.shape(text)[:1]
            return {
                name: tf.repeat(values[tf.newaxis], rows, axis=0)
                for name, values in (
                    ("tags", tf.identity(self.tags.names)),
                    ("counts", tf.identity(self.tags.counts)),
                )
            }

        self.filtered, self.known_tags = filtered, known_tags

    @signature(text=tf.string, k=tf.int32)
    def serve(self, text: tf.Tensor, k: tf.Tensor) -> dict[str, tf.Tensor]:
        """Signature `serving_default`: finds the best documents for queries."""
        return self._search(text, k)

    def write_extra(self, version: Path) -> None:
        """Writes hashes of the ids, for `check_ids` in the next export."""
        path = version / IDS_FILE
        path.parent.mkdir(exist_ok=True)
        ids = (key.decode(errors="surrogateescape") for key in self.ids.numpy())
        np.save(path, id_hashes(ids))

    @abstractmethod
    def _search(
        self, text: tf.Tensor, k: tf.Tensor, tags: tf.Tensor | None = None
    ) -> dict[str, tf.Tensor]:
        """Returns the outputs of `serve` or, with tags, of `filtered`."""

    def _mask(self, tags: tf.Tensor) -> TagMask:
        """Returns the mask for queries' tags, even if no document has tags."""
        if hasattr(self, "tags"):
            return self.tags.mask(tags)
        all_documents = (tf.strings.strip(tags) == "")[:, tf.newaxis]
        return lambda start, stop: all_documents

    def _admitted(
        self, text: tf.Tensor, k: tf.Tensor, widest: int
    ) -> list[tf.Tensor]:
        """Checks a request's size; returns `text` and the outputs' width."""
        width = tf.minimum(tf.reduce_max(tf.concat([k, [0]], axis=0)), widest)
        text, width = refuse_many_hits(text, width, widest)
        return [refuse_long_titles(text, width, self.longest), width]

    def _results(
        self, scores: tf.Tensor, numbers: tf.Tensor, is_result: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Returns the outputs of `serve`; `numbers` are documents' indices."""
        outputs = {
            "ids": tf.where(is_result, tf.gather(self.ids, numbers), ""),
            "scores": tf.where(is_result, scores, PADDING_COSINE),
        }
        if hasattr(self, "titles"):
            titles = tf.gather(self.titles, numbers)
            outputs["titles"] = tf.where(is_result, titles, "")
        return outputs


class RetrieverModule(SearchModule):
    """A query encoder with the vectors and ids of all documents."""

    def __init__(
        self,
        encoder: EncodingModule,
        rows: DocumentRows,
        kind: str = "float32",
        max_k: int = MAX_K,
    ) -> None:
        super().__init__()
        self.weights = encoder.weights
        self.resources = encoder.resources
        # If this module kept the encoder instead of a method, TensorFlow would
        # save the encoder's signatures, too.
        self._encode = encoder.encode
        self._set_vectors(rows, kind, max_k)

    def _search(
        self, text: tf.Tensor, k: tf.Tensor, tags: tf.Tensor | None = None
    ) -> dict[str, tf.Tensor]:
        text, width = self._admitted(text, k, self._widest)
        mask = None if tags is None else self.tags.mask(tags)
        queries = self._encode(text)
        scores, numbers = best_rows(
            partial(self.vectors.cosines, queries),
            queries,
            self.vectors.edges,
            width,
            mask,
        )
        is_result = tf.range(width) < k[:, tf.newaxis]
        if mask is not None:
            is_result &= scores > MASKED
        return self._results(scores, numbers, is_result)


def retriever_graph(
    query: EncodingModule,
    document: EncodingModule,
    documents: Documents | EncodedParts | None,
    vectors: str,
    max_k: int,
    progress: bool,
    # Returns the value of `ServedModule.portable`: a function, or `None`.
    portable: Callable[[DocumentRows, StoredVectors | None], Any] | None = None,
) -> Graphs:
    """Returns `{"retriever": function}`, or `{}` if there are no documents."""
    if documents is None:
        return {}

    def retriever() -> RetrieverModule:
        if isinstance(documents, EncodedParts):
            sha256 = document.fingerprint
            if documents.encoder_sha256 != sha256:
                raise InputError(
                    f"{documents.folder}: found titles encoded by the encoder"
                    f" {documents.encoder_sha256:.12}, expected {sha256:.12}"
                    " as in the run: encode the titles with the"
                    " document_encoder of this run"
                )
            rows = documents.read()
        else:
            check_documents(documents)
            rows = encoded_rows(document, documents, progress)
        module = RetrieverModule(query, rows, vectors, max_k)
        if portable and isinstance(documents, Documents):
            module.portable = portable(rows, module.stored)
        return module

    return {"retriever": retriever}


def encoded_rows(
    encoder: EncodingModule | None, documents: Documents, progress: bool = False
) -> DocumentRows:
    """Encodes documents; without an encoder, the rows have no vectors."""
    texts: Sequence[Any] = documents.titles
    if encoder and encoder.reads_sentences and documents.sentences:
        texts = documents.sentences
    return DocumentRows(
        documents.ids,
        encoder and encoder.encode_all(texts, progress),
        documents.tags,
        documents.shown,
    )
