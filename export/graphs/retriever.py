"""The graph of a retriever: exact search of the documents nearest to queries.

Their vectors are stored as float32 or int8; a search can be restricted to
documents with tags.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

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
    with_few_hits,
    with_short_titles,
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
from lstm_dssm_client.signatures import check_count, tag_name

_NEVER = 127  # more than `MAX_TAGS`, and an int8


class DocumentTags(tf.Module):
    """The tags of each of n documents, in a graph.

    A query's tags are looked up in a table of all distinct tags, and then each
    document's numbers among those that were found. The tags of one name are
    neighbours.
    """

    def __init__(self, tags: Sequence[Sequence[str]]) -> None:
        super().__init__()
        encoded = [[t.encode() for t in checked_tags(row)] for row in tags]
        given = sorted({tag for row in encoded for tag in row})
        forms = tf_text.normalize_utf8(tf.constant(given, tf.string), "NFC")
        composed = dict(zip(given, forms.numpy().tolist(), strict=True))
        names = sorted(
            {*composed.values()}, key=lambda tag: (tag_name(tag), tag)
        )
        groups = [*map(tag_name, names)]
        number_of = {name: row for row, name in enumerate(sorted({*groups}))}
        number = {name: index for index, name in enumerate(names)}
        width = max(map(len, encoded))
        numbers = np.full([len(encoded), width], len(names), np.int32)
        for row, row_tags in enumerate(encoded):
            # A document can have a tag in two forms of Unicode.
            own = sorted({number[composed[tag]] for tag in row_tags})
            numbers[row, : len(own)] = own
        self._width = width
        self._count = len(names)
        self._table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(
                tf.constant(names, tf.string),
                tf.range(len(names), dtype=tf.int32),
            ),
            default_value=len(names),
        )
        # Variables, not constants: a graph is limited to 2 GiB.
        self.numbers = tf.Variable(numbers, trainable=False)
        self.names = tf.Variable(names, trainable=False)
        counts = np.bincount(numbers.ravel(), minlength=len(names) + 1)
        self.counts = tf.Variable(np.int32(counts[:-1]), trainable=False)
        self._groups = len(number_of)
        # The name of each tag, and of the number that stands for no tag.
        self.group_of = tf.Variable(
            [*(number_of[group] for group in groups), self._groups],
            trainable=False,
            dtype=tf.int32,
        )

    def mask(self, tags: tf.Tensor) -> "TagMask":
        """Returns which documents have a query's tags.

        They are strings `[batch]` of tags that are separated by commas, with
        or without white space; "" stands for all documents. Of tags
        `name:value` with equal names a document needs one, of plain tags all;
        no document is found by a tag that no document has. Accents may be
        characters of their own, or composed with their letters.
        """
        query_tags = tf.strings.split(tf_text.normalize_utf8(tags, "NFC"), ",")
        values = tf.strings.strip(query_tags.values)
        is_tag = values != ""
        numbers = self._table.lookup(tf.boolean_mask(values, is_tag))
        rows = tf.cast(query_tags.value_rowids(), tf.int32)
        rows = tf.boolean_mask(rows, is_tag)
        batch = tf.shape(tags)[0]

        def occurring(numbers: tf.Tensor, count: int) -> tf.Tensor:
            """Returns which numbers below `count` occur in each row."""
            occurs = tf.math.unsorted_segment_max(
                tf.ones_like(numbers), rows * count + numbers, batch * count
            )
            # The maximum of no values is the lowest number.
            return tf.reshape(occurs > 0, [batch, count])

        # One more column, of the number that stands for no tag.
        has_tag = occurring(numbers, self._count + 1)
        groups = occurring(tf.gather(self.group_of, numbers), self._groups + 1)
        needed = tf.reduce_sum(tf.cast(groups, tf.int32), 1)
        # No document has so many names.
        needed = tf.where(has_tag[:, -1], _NEVER, tf.minimum(needed, _NEVER))
        needed = tf.cast(needed, tf.int8)[:, tf.newaxis]
        has_tag &= tf.range(self._count + 1) < self._count

        def tag_mask(start: tf.Tensor, stop: tf.Tensor) -> tf.Tensor:
            block = self.numbers[start:stop]
            names = tf.gather(self.group_of, block)
            count = tf.zeros([batch, stop - start], tf.int8)
            held = tf.zeros([batch, stop - start], tf.bool)
            # One number after the other: [batch, block, w] may be large.
            for column in range(self._width):
                if column:  # whether another value of the name has matched
                    held &= names[:, column] == names[:, column - 1]
                matches = tf.gather(has_tag, block[:, column], axis=1)
                count += tf.cast(matches & ~held, tf.int8)
                held |= matches
            return tf.equal(count, needed)

        return tag_mask


TagMask = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]
"""Function of the first row of a block of documents and the row after it; it
returns which of them each query may find, booleans `[batch, block]`."""


class EqualVectors(NamedTuple):
    """Groups documents with equal vectors, and sorts each group together.

    The last bits of a matrix product depend on the position of a row, so a
    vector that several documents share is multiplied once. Documents are in
    the order of the first document with the same vector, then in their own.
    """

    order: np.ndarray  # the document at each position, integers [n]
    vector_of: np.ndarray  # the distinct vector of each position, int32 [n]
    first: np.ndarray  # the first document with each distinct vector

    @classmethod
    def of(cls, vectors: np.ndarray) -> "EqualVectors":
        """Finds the rows of float `[n, d]` that are equal bit for bit."""
        keys = np.array([hash(row.tobytes()) for row in vectors], np.int64)
        _, first, key = np.unique(keys, return_index=True, return_inverse=True)
        order = np.argsort(first[key], kind="stable")
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


class DocumentVectors(tf.Module):
    """Base of the unit vectors of documents; each distinct vector once.

    `distinct` are float32 `[m, d]`, `vector_of` the row in them of each of n
    documents, ascending, see `EqualVectors`; by default document i has row i.
    """

    def __init__(
        self, distinct: np.ndarray, vector_of: np.ndarray | None = None
    ) -> None:
        super().__init__()
        if vector_of is None:
            vector_of = np.arange(len(distinct), dtype=np.int32)
        self.count = len(vector_of)
        self.edges = block_edges(vector_of)
        self._shared = len(distinct) < self.count
        if self._shared:
            self.vector_of = tf.Variable(vector_of, trainable=False)
        self._store(distinct)

    @abstractmethod
    def _store(self, distinct: np.ndarray) -> None:
        """Stores vectors as variables: constants are limited to 2 GiB."""

    @abstractmethod
    def _cosines(
        self, queries: tf.Tensor, start: tf.Tensor, stop: tf.Tensor
    ) -> tf.Tensor:
        """Computes the cosines of queries with a range of distinct vectors."""

    @abstractmethod
    def _vectors_of(self, rows: tf.Tensor) -> tf.Tensor:
        """Looks up distinct vectors."""

    def cosines(
        self, queries: tf.Tensor, start: tf.Tensor, stop: tf.Tensor
    ) -> tf.Tensor:
        """Computes the cosine of each query with a range of documents.

        The documents have the numbers `start` to `stop - 1`, int32 scalars.
        `queries` are unit vectors, float32 `[batch, d]`; the cosines are
        float32 `[batch, stop - start]`.
        """
        if not self._shared:
            return self._cosines(queries, start, stop)
        rows = self.vector_of[start:stop]
        cosines = self._cosines(queries, rows[0], rows[-1] + 1)
        return tf.gather(cosines, rows - rows[0], axis=1)

    def vectors_of(self, documents: tf.Tensor) -> tf.Tensor:
        """Looks up the unit vectors of documents, int32 `[batch, k]`."""
        if self._shared:
            documents = tf.gather(self.vector_of, documents)
        return self._vectors_of(documents)


class Float32Vectors(DocumentVectors):
    """Stores unit vectors as float32, 4 bytes a number."""

    def _store(self, distinct: np.ndarray) -> None:
        self.rows = tf.Variable(distinct, trainable=False, dtype=tf.float32)

    def _cosines(
        self, queries: tf.Tensor, start: tf.Tensor, stop: tf.Tensor
    ) -> tf.Tensor:
        return tf.matmul(queries, self.rows[start:stop], transpose_b=True)

    def _vectors_of(self, rows: tf.Tensor) -> tf.Tensor:
        return tf.gather(self.rows, rows)


class Int8Vectors(DocumentVectors):
    """Stores vectors as integers from -127 to 127, 1 byte a number.

    `codes` are int8 `[n, d]`, `scales` float32 `[n]`: the largest number of
    each vector becomes 127. Inner products are divided by the length of the
    rounded vector, so that a score is the exact cosine of the query and the
    rounded vector. One scale for each dimension rounds more coarsely: on 53,489
    product titles, recall@10 compared with float32 was 0.980, not 0.993.
    """

    def _store(self, distinct: np.ndarray) -> None:
        codes, scales = int8_codes(distinct)
        self.codes = tf.Variable(codes, trainable=False)
        self.scales = tf.Variable(scales, trainable=False)

    def _cosines(
        self, queries: tf.Tensor, start: tf.Tensor, stop: tf.Tensor
    ) -> tf.Tensor:
        # CPU kernels multiply floats only. The floats of one block stay in
        # the cache, so memory is read at 1 byte a number.
        rows = tf.cast(self.codes[start:stop], tf.float32)
        products = tf.matmul(queries, rows, transpose_b=True)
        return products * self.scales[start:stop]

    def _vectors_of(self, rows: tf.Tensor) -> tf.Tensor:
        codes = tf.cast(tf.gather(self.codes, rows), tf.float32)
        return codes * tf.gather(self.scales, rows)[..., tf.newaxis]


def int8_codes(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rounds vectors `[n, d]` to integers, each vector on its own scale.

    Returns codes, int8, and scales, float32 `[n]`; `codes * scales` have length
    1. A zero vector stays zero, and its scale is 1.
    """
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    largest[largest == 0] = 1
    codes = np.rint(vectors * (127 / largest)).astype(np.int8)
    lengths = np.linalg.norm(codes.astype(np.float32), axis=1)
    lengths[lengths == 0] = 1
    return codes, 1 / lengths


VECTORS: dict[str, type[DocumentVectors]] = dict(
    zip(fields.VECTORS, (Float32Vectors, Int8Vectors), strict=True)
)
"""Classes by the values of `lstm-dssm-export --vectors`."""


BLOCK = 16_384
"""Number of documents scored at once: 64 KiB of scores for each query."""


def block_edges(vector_of: np.ndarray) -> np.ndarray:
    """Divides documents into blocks of `BLOCK` at most; returns the edges.

    Documents with one vector are in one block. More than `BLOCK` of them have
    blocks of their own, in each of which the vector is the only one: a product
    of equal shapes has equal bits. `vector_of` is that of `EqualVectors`, or
    has different numbers for documents without vectors.
    """
    count = len(vector_of)
    starts = np.flatnonzero(np.diff(vector_of, prepend=-1))
    starts = np.append(starts, count)
    edges = [0]
    while edges[-1] < count:
        limit = min(edges[-1] + BLOCK, count)
        last = starts[np.searchsorted(starts, limit, "right") - 1]
        first = starts[np.searchsorted(starts, edges[-1])]
        if first > edges[-1]:  # the rest of more than a block
            last = min(first, limit)
        edges.append(int(last) if last > edges[-1] else limit)
    return np.array(edges, np.int32)


# Two blocks at a time: one is multiplied while another is sorted.
_BLOCKS_AT_ONCE = 2

PADDING_COSINE = -2.0
"""Score in the columns beyond the k of a query; lower than any score."""

MASKED = float(np.finfo(np.float32).min)
"""What a document outside a mask has in place of a score."""


class GraphModule(Protocol):
    """Protocol of an exported encoder: what is saved of it, and its graph."""

    weights: list[Any]
    resources: list[Any]

    def encode(self, text: tf.Tensor) -> tf.Tensor:
        """Encodes strings `[batch]` into unit vectors `[batch, d]`."""


def best_rows(
    scores_of: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
    queries: tf.Tensor,
    edges: np.ndarray,
    width: tf.Tensor,
    mask: TagMask | None = None,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Finds the documents with the largest scores of all.

    `scores_of` computes the scores of a block, from its first row to the row
    after it, `[batch, block]`; see `block_edges`. `queries` has a row for each
    query.

    Block by block the best `width` so far are kept: all scores of a million
    documents and 512 queries would take 2 GB. Returns scores, descending, and
    rows, `[batch, width]`; documents outside the mask last, with `MASKED`.
    """

    def add_block(
        block: tf.Tensor, scores: tf.Tensor, numbers: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        start, stop = tf.gather(edges, block), tf.gather(edges, block + 1)
        cosines = scores_of(start, stop)
        if mask is not None:
            cosines = tf.where(mask(start, stop), cosines, MASKED)
        block_scores, columns = tf.math.top_k(
            cosines, tf.minimum(width, stop - start)
        )
        # `top_k` returns equal scores in order, so earlier blocks come first.
        scores = tf.concat([scores, block_scores], axis=1)
        numbers = tf.concat([numbers, start + columns], axis=1)
        scores, best = tf.math.top_k(
            scores, tf.minimum(width, tf.shape(scores)[1])
        )
        return block + 1, scores, tf.gather(numbers, best, batch_dims=1)

    batch = tf.shape(queries)[0]
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


def check_retriever_options(vectors: str, max_k: int) -> None:
    """Raises `InputError` for unknown `vectors`, or `max_k` out of range."""
    if vectors not in VECTORS:
        raise InputError(
            f"vectors {vectors!r}: expected one of {', '.join(VECTORS)}"
        )
    check_count(max_k, "max_k")


class SearchModule(ServedModule):
    """Base of exported modules that search documents.

    A subclass implements the search as `_search`.
    """

    vectors: DocumentVectors

    def _set_vectors(
        self, rows: DocumentRows, kind: str, max_k: int
    ) -> EqualVectors:
        """Creates the variables of vectors, ids and tags.

        Returns which documents share a vector, and the order in which the
        documents are stored: documents with equal vectors are neighbours.
        """
        equal = EqualVectors.of(rows.vectors)
        distinct = rows.vectors  # a copy may be some gigabytes
        if len(equal.first) < len(distinct):
            distinct = distinct[equal.first]
        self.vectors = VECTORS[kind](distinct, equal.vector_of)
        self._set_documents(rows, equal.order, max_k)
        return equal

    def _set_documents(
        self, rows: DocumentRows, order: Iterable[int], max_k: int
    ) -> None:
        """Stores ids, titles and tags of documents in this order.

        If a document has tags, the signature `filtered` searches those with
        some tags only, and `known_tags` lists all tags for each row, with the
        numbers of their documents. They are attributes of the module, since
        TensorFlow saves every signature that a class has. Inputs are those of
        `serving_default`, and `tags`, see `DocumentTags.mask`; the text of
        `known_tags` is not read.
        """
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

        @signature(text=tf.string, k=tf.int32, tags=tf.string)
        def filtered(
            text: tf.Tensor, k: tf.Tensor, tags: tf.Tensor
        ) -> dict[str, tf.Tensor]:
            return self._search(text, k, tags)

        @signature(text=tf.string)
        def known_tags(text: tf.Tensor) -> dict[str, tf.Tensor]:
            count = int(self.tags.names.shape[0])
            text, _ = with_few_hits(
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
        """Signature `serving_default`: finds the best documents for queries.

        `text` is strings `[batch]`, `k` the number of results for each, int32
        `[batch]`, because a server that batches requests needs the batch as
        the first dimension of every input.

        `ids` are strings `[batch, width]`, `scores` float32 of the same shape,
        best first, and `titles` strings, unless the titles of the documents are
        not known. The width is the largest k, but at most `max_k` and the
        number of documents. Columns beyond the k of a row hold "" and -2.
        """
        return self._search(text, k)

    def write_extra(self, version: Path) -> None:
        """Writes hashes of the ids, which the next export compares with its."""
        path = version / IDS_FILE
        path.parent.mkdir(exist_ok=True)
        ids = (key.decode(errors="surrogateescape") for key in self.ids.numpy())
        np.save(path, id_hashes(ids))

    @abstractmethod
    def _search(
        self, text: tf.Tensor, k: tf.Tensor, tags: tf.Tensor | None = None
    ) -> dict[str, tf.Tensor]:
        """Returns the outputs of `serve`, or with tags of `filtered`."""

    def _mask(self, tags: tf.Tensor) -> TagMask:
        """See `DocumentTags.mask`; without tags, none of them is found."""
        if hasattr(self, "tags"):
            return self.tags.mask(tags)
        all_documents = (tf.strings.strip(tags) == "")[:, tf.newaxis]
        return lambda start, stop: all_documents

    def _admitted(
        self, text: tf.Tensor, k: tf.Tensor, widest: int
    ) -> list[tf.Tensor]:
        """Returns the texts, and the largest k of the rows, at most `widest`.

        A request for too many results is refused.
        """
        largest = tf.reduce_max(tf.concat([k, [0]], axis=0))
        text, width = with_few_hits(text, tf.minimum(largest, widest), widest)
        return [with_short_titles(text, width, self.longest), width]

    def _results(
        self, scores: tf.Tensor, numbers: tf.Tensor, is_result: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Returns the outputs of `serve`; `numbers` are documents."""
        outputs = {
            "ids": tf.where(is_result, tf.gather(self.ids, numbers), ""),
            "scores": tf.where(is_result, scores, PADDING_COSINE),
        }
        if hasattr(self, "titles"):
            titles = tf.gather(self.titles, numbers)
            outputs["titles"] = tf.where(is_result, titles, "")
        return outputs


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
    portable: Callable[[DocumentRows, str], Any] | None = None,
) -> Graphs:
    """Returns the retriever of some documents; nothing without documents.

    `portable` returns what `ServedModule.portable` is for titles.
    """
    if documents is None:
        return {}

    def retriever() -> RetrieverModule:
        if isinstance(documents, EncodedParts):
            sha256 = document.fingerprint
            if documents.encoder_sha256 != sha256:
                raise InputError(
                    f"{documents.folder}: found titles encoded by the encoder"
                    f" {documents.encoder_sha256:.12}, expected {sha256:.12}"
                    " as in the run: encode them with the document_encoder of"
                    " this run"
                )
            rows = documents.read()
        else:
            check_documents(documents)
            rows = encoded_rows(document, documents, progress)
        module = RetrieverModule(query, rows, vectors, max_k)
        if portable and isinstance(documents, Documents):
            module.portable = portable(rows, vectors)
        return module

    return {"retriever": retriever}


def encoded_rows(
    encoder: EncodingModule | None,
    documents: Documents,
    progress: bool = False,
) -> DocumentRows:
    """Encodes documents; without an encoder they have no vectors."""
    texts: Sequence[Any] = documents.titles
    if encoder and encoder.reads_sentences and documents.sentences:
        texts = documents.sentences
    return DocumentRows(
        documents.ids,
        encoder and encoder.encode_all(texts, progress),
        documents.tags,
        documents.shown,
    )
