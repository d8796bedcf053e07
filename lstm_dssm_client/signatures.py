"""Signatures of served models: their inputs, made of texts, and results.

Texts, pairs of texts and tags are checked, converted to UTF-8 and divided into
chunks, each of which is the rows of one request of bounded size. Clients
return the outputs as `Hit`s and other tuples.
"""

import json
import numbers
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np

from lstm_dssm_client.errors import InputError

Version = int | str | None
"""Which version of a served model to ask: its number, its label (a name that
the server's configuration gives it, such as "canary"), or None for the
newest."""

DEFAULT = "serving_default"
"""Name of the signature that a request without a name calls."""

KEYS = "keys"
"""Name of the signature of a KeyVec that returns key sentences and words."""

FILTERED = "filtered"
"""Name of the signature of a retriever whose titles have tags."""

KNOWN_TAGS = "known_tags"
"""Name of the signature of the same retrievers that lists all tags."""

EXPLAINED = "explained"
"""Name of the signature of a hybrid retriever that explains its scores."""

EXPLAINED_K = 100
"""Maximum number of results of `EXPLAINED` for a query; a larger k counts as
this many."""

HYBRID_PARTS = ("towers", "words", "bm25", "numbers", "hubness", "base")
"""What the log-odds of a hybrid retriever's hits add up, in the order of its
outputs. All but `base` have a weight."""

EXPLAINED_PARTS = ("bm25", "numbers", "words")
"""The parts that are divided among the words of the query."""

PREDICT = "tensorflow/serving/predict"
"""Method name, in a SavedModel, of the signatures that Predict can call."""


class TensorInfo(NamedTuple):
    """The dtype and the shape of an input or an output.

    Attributes:
        dtype: NumPy's name of the dtype, or `string`.
        shape: The sizes, None where any size is allowed; None as a whole
            where any rank is allowed.

    Example:
    >>> vectors = TensorInfo("float32", (None, 96))
    >>> vectors.fits(np.zeros([5, 96], np.float32))
    True
    >>> vectors.fits(np.zeros([5, 96], np.float64))
    False
    """

    dtype: str
    shape: tuple[int | None, ...] | None

    def fits(self, values: np.ndarray) -> bool:
        """Returns whether an array has this dtype and such a shape."""
        if dtype_name(values) != self.dtype:
            return False
        return self.shape is None or (
            values.ndim == len(self.shape)
            and all(
                want in (None, size)
                for want, size in zip(self.shape, values.shape, strict=True)
            )
        )


class Signature(NamedTuple):
    """The tensors of one signature, by name.

    Attributes:
        inputs: The tensors of a request, by name.
        outputs: The tensors of a reply, by name.

    Example:
    >>> signature = Signature(
    ...     {"texts": TensorInfo("string", (None,))},
    ...     {"vectors": TensorInfo("float32", (None, 96))},
    ... )
    >>> signature.outputs["vectors"].shape
    (None, 96)
    """

    inputs: dict[str, TensorInfo]
    outputs: dict[str, TensorInfo]


def dtype_name(values: np.ndarray) -> str:
    """Returns the name of an array's dtype, `string` for texts."""
    return "string" if values.dtype.kind in "OSU" else values.dtype.name


def describe_misfit(
    arrays: Mapping[str, np.ndarray], signature: Signature | None
) -> str:
    """Describes an input whose dtype or shape does not fit the signature.

    Returns "" if all fit. The server checks the names before it batches.
    """
    specs = signature.inputs if signature else {}
    for name in arrays.keys() & specs.keys():
        values, spec = arrays[name], specs[name]
        if not spec.fits(values):
            return (
                f"input {name!r} is {dtype_name(values)} {values.shape}, "
                f"expected {spec.dtype} {spec.shape or 'of any shape'}"
            )
    return ""


class Hit(NamedTuple):
    """One document that a search returns.

    Attributes:
        id: The document's id.
        score: Cosine of the query's and the document's vector, from -1 to 1;
            of a hybrid retriever the probability that it is relevant.
        title: The document's title; the id if the retriever has no titles, ""
            of an `Index`.

    Example:
    >>> Hit("d1", 0.83, "hex bolt").title
    'hex bolt'
    """

    id: str
    score: float
    title: str = ""


class ExplainedHit(NamedTuple):
    """One document that a hybrid retriever returns, and why.

    Attributes:
        id: See `Hit`.
        score: The probability that the document is relevant.
        parts: What each of `HYBRID_PARTS` adds to the log-odds of the score,
            weights included; 0 for a part that the retriever lacks.
        words: What each word of the query adds to each of `EXPLAINED_PARTS`;
            the part of the towers stands whole.
        title: See `Hit`.
        weak: Whether the score is below that of a good match.

    Example:
    >>> parts = {"towers": 1.4, "words": 0.2, "bm25": 0.1, "base": -1.0}
    >>> words = {"words": {"hex": 0.05, "bolt": 0.15}}
    >>> print(ExplainedHit("d1", 0.668, parts, words).why)
    towers 1.40, words 0.20 (bolt 0.15, hex 0.05), bm25 0.10, base -1.00
    """

    id: str
    score: float
    parts: dict[str, float]
    words: dict[str, dict[str, float]]
    title: str = ""
    weak: bool = False

    @property
    def why(self) -> str:
        """The parts that are not 0 in one line, each with its words."""
        return ", ".join(
            f"{name} {share:.2f}{_of_words(self.words.get(name, {}))}"
            for name, share in self.parts.items()
            if share
        )


def _of_words(shares: Mapping[str, float]) -> str:
    """Lists words in brackets, the largest share first."""
    ordered = sorted(shares.items(), key=lambda share: -abs(share[1]))
    listed = ", ".join(f"{word} {share:.2f}" for word, share in ordered)
    return f" ({listed})" if listed else ""


class KeyParts(NamedTuple):
    """The key sentences and the key words of a document.

    Attributes:
        sentences: Pairs of a sentence and its probability p_i, the most
            probable first.
        words: The words that the document's vector predicts, the most
            probable first. They need not occur in the document.

    Example:
    >>> parts = KeyParts([("Warm the glue.", 0.9), ("Wait.", 0.1)], ["glue"])
    >>> [sentence for sentence, p in parts.sentences if p > 0.5]
    ['Warm the glue.']
    """

    sentences: list[tuple[str, float]]
    words: list[str]


class Prediction(NamedTuple):
    """The reply of a server to a Predict request.

    Attributes:
        model: The model's name.
        version: The version's number. None over HTTP where the newest version
            or a label was asked for: replies do not name it there.
        signature: The signature's name.
        outputs: Arrays by the outputs' names.

    Example:
    >>> vectors = np.ones([1, 2], np.float32)
    >>> outputs = {"vectors": vectors}
    >>> reply = Prediction("encoder", 1, "serving_default", outputs)
    >>> reply.outputs["vectors"].shape
    (1, 2)
    """

    model: str
    version: int | None
    signature: str
    outputs: dict[str, np.ndarray]


class VersionStatus(NamedTuple):
    """The state of one version of a model on a server.

    Attributes:
        state: START, LOADING, AVAILABLE, UNLOADING or END.
        code: "OK", or the error code of a version that did not load.
        message: Why the version did not load; empty otherwise.

    Example:
    >>> VersionStatus("AVAILABLE", "OK", "").state
    'AVAILABLE'
    """

    state: str
    code: str
    message: str


Outputs = Mapping[str, tuple[type, int]]
"""The outputs that a client expects of a model: output name -> NumPy dtype and
number of dimensions, of which the first is the batch."""

# Of an encoder, a retriever, a pair scorer and the key parts of a KeyVec.
EMBEDDING: Outputs = {"embedding": (np.float32, 2)}
RANKING: Outputs = {
    "ids": (object, 2),
    "scores": (np.float32, 2),
    "titles": (object, 2),
}
EXPLANATION: Outputs = {
    **RANKING,
    "parts": (np.float32, 3),
    "words": (object, 2),
    "weak": (np.int32, 2),
}
TAG_LIST: Outputs = {"tags": (object, 2), "counts": (np.int32, 2)}

OPTIONAL = frozenset({"titles"})
"""Outputs that retrievers of other programs may lack."""

SCORE: Outputs = {"score": (np.float32, 1)}
KEY_PARTS: Outputs = {
    "sentences": (object, 2),
    "probabilities": (np.float32, 2),
    "words": (object, 2),
}


def checked_outputs(
    prediction: Prediction, outputs: Outputs, rows: int
) -> dict[str, np.ndarray]:
    """Returns the outputs of a prediction of `rows` rows, by name.

    A missing output, or one of another dtype or shape, raises `InputError`;
    `OPTIONAL` outputs may be missing.
    """
    arrays = {}
    for name, (dtype, rank) in outputs.items():
        shape = ", ".join([str(rows), *["any"] * (rank - 1)])
        expected = (
            f"expected {np.dtype(dtype)} [{shape}]; name a model that"
            " lstm-dssm-export wrote"
        )
        values = prediction.outputs.get(name)
        if values is None and name in OPTIONAL:
            continue
        if values is None:
            raise InputError(
                f"model {prediction.model}: it has no output {name}, {expected}"
            )
        if values.dtype != dtype or values.ndim != rank or len(values) != rows:
            raise InputError(
                f"model {prediction.model}: its output {name} is {values.dtype}"
                f" {list(values.shape)}, {expected}"
            )
        arrays[name] = values
    return arrays


def hits_from_outputs(
    ids: np.ndarray,
    scores: np.ndarray,
    k: int,
    titles: np.ndarray | None = None,
) -> list[list[Hit]]:
    """Returns the hits in a retriever's outputs `[batch, width]`.

    An id is empty where a row has no further hit. The width exceeds k if the
    server batched the request with another one of a larger k. Without titles
    the ids stand for them.
    """
    shown = ids if titles is None else titles
    rows = (ids[:, :k], scores[:, :k].tolist(), shown[:, :k])
    return [
        [
            Hit(
                key.decode(errors="replace"),
                score,
                title.decode(errors="replace"),
            )
            for key, score, title in zip(*row, strict=True)
            if key
        ]
        for row in zip(*rows, strict=True)
    ]


def explained_from_outputs(
    ids: np.ndarray,
    scores: np.ndarray,
    parts: np.ndarray,
    words: np.ndarray,
    weak: np.ndarray,
    k: int,
    titles: np.ndarray | None = None,
) -> list[list[ExplainedHit]]:
    """Does as `hits_from_outputs` with the outputs of `explained`."""
    return [
        [
            ExplainedHit(
                hit.id,
                hit.score,
                dict(zip(HYBRID_PARTS, shares, strict=True)),
                json.loads(text),
                hit.title,
                bool(is_weak),
            )
            # Columns without a hit are the last ones.
            for hit, shares, text, is_weak in zip(hits, *row, strict=False)
        ]
        for hits, *row in zip(
            hits_from_outputs(ids, scores, k, titles),
            parts.tolist(),
            words,
            weak.tolist(),
            strict=True,
        )
    ]


def tags_from_outputs(tags: np.ndarray, counts: np.ndarray) -> dict[str, int]:
    """Returns tag -> number of documents, from `KNOWN_TAGS` of one row."""
    names = (tag.decode(errors="replace") for tag in tags[0])
    return dict(zip(names, counts[0].tolist(), strict=True))


def no_explanations(model: str) -> InputError:
    """Returns the error of a model without the signature `explained`."""
    return InputError(
        f"model {model}: it has no signature {EXPLAINED}, which explains the"
        " scores of a hybrid retriever: export it with --hybrid"
    )


def no_tags(model: str) -> InputError:
    """Returns the error of a retriever whose documents have no tags."""
    return InputError(
        f"{model}: it was exported without tags, and cannot filter by them:"
        " export it with --data, or with lines id TAB title TAB tags"
    )


def key_parts_from_outputs(
    sentences: np.ndarray, probabilities: np.ndarray, words: np.ndarray, n: int
) -> list[KeyParts]:
    """Returns the key parts in the outputs `[batch, width]` of a KeyVec.

    A probability is 0, a word empty, where a document has no further one. The
    width exceeds n if the server batched the request with one of a larger n.
    """
    return [
        KeyParts(
            [
                (sentence.decode(errors="replace"), p)
                for sentence, p in zip(*row, strict=True)
                if p
            ],
            [word.decode() for word in of_document if word],
        )
        for *row, of_document in zip(
            sentences[:, :n],
            probabilities[:, :n].tolist(),
            words[:, :n],
            strict=True,
        )
    ]


_NEAREST = 3


def tag_name(tag: bytes) -> bytes:
    """Returns the name of a tag with its colon; a plain tag is its own name."""
    name, colon, _ = tag.partition(b":")
    return name + colon


def by_name(tags: bytes) -> list[list[bytes]]:
    """Groups the tags of a query, with commas between, by their names."""
    groups: dict[bytes, list[bytes]] = {}
    for tag in tags.split(b","):
        groups.setdefault(tag_name(tag), []).append(tag)
    return [*groups.values()]


def check_known(model: str, tags: bytes, known: Mapping[str, int]) -> None:
    """Raises `InputError` for a tag that no document has.

    Args:
        model: The name of the retriever, for the error.
        tags: Tags of a query, with commas between.
        known: Tag -> number of documents with it.
    """
    for tag in tags.decode(errors="replace").split(","):
        if tag in known:
            continue
        folded = {each.casefold(): each for each in known}
        near = get_close_matches(tag.casefold(), folded, _NEAREST)
        some = [folded[each] for each in near] or [*known][:_NEAREST]
        raise InputError(
            f"{model}: found the tag {tag!r:.60}, which no document has:"
            f" give another, such as {', '.join(some)}"
        )


def facets(known: Sequence[str], most: int) -> dict[str, list[str]]:
    """Returns name -> its tags, of names with fewer than `most` values.

    Plain tags are left out.

    Example:
    >>> facets(["stock:no", "stock:yes", "new"], most=50)
    {'stock': ['stock:no', 'stock:yes']}
    """
    tags_of: dict[str, list[str]] = {}
    for tag in known:
        name, colon, _ = tag.partition(":")
        if colon:
            tags_of.setdefault(name, []).append(tag)
    return {name: tags for name, tags in tags_of.items() if len(tags) < most}


def as_bytes(texts: Any) -> list[bytes]:
    """Converts any iterable of strings or bytes to a list of UTF-8 bytes.

    Bytes that Python has decoded with surrogates become the same bytes again;
    any other lone surrogate becomes "?".
    """
    if isinstance(texts, str | bytes):
        raise InputError(
            f"expected a list of texts, got one text, {texts!r:.60}; "
            "write [text]"
        )
    if not isinstance(texts, Iterable):
        raise InputError(
            f"expected a list of texts, got {texts!r:.60} "
            f"({type(texts).__name__})"
        )
    return [_encoded(index, text) for index, text in enumerate(texts)]


def distinct_values(values: Sequence[Any]) -> tuple[list[int], np.ndarray]:
    """Finds the distinct values of a sequence.

    Returns the index of the first of each distinct value, and for each value
    the row of its own in that list, integers `[n]`.
    """
    rows: dict[Any, int] = {}
    row_of = [rows.setdefault(value, len(rows)) for value in values]
    first = np.unique(row_of, return_index=True)[1].tolist()
    return first, np.array(row_of, np.intp)


def _encoded(index: int, text: Any) -> bytes:
    if isinstance(text, bytes):
        return text
    if not isinstance(text, str):
        raise InputError(
            f"text {index} is {text!r:.60} ({type(text).__name__}), "
            "expected str or bytes"
        )
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def query_as_bytes(query: Any) -> bytes:
    """Converts one query to UTF-8 bytes, see `as_bytes`."""
    if not isinstance(query, str | bytes):
        raise InputError(
            f"query is {query!r:.60} ({type(query).__name__}), expected"
            " one text"
        )
    return as_bytes([query])[0]


def pairs_as_bytes(
    queries: Any, documents: Any
) -> tuple[list[bytes], list[bytes]]:
    """Converts as many queries as documents to UTF-8 bytes, see `as_bytes`."""
    sides = as_bytes(queries), as_bytes(documents)
    if len(sides[0]) != len(sides[1]):
        raise InputError(
            f"found {len(sides[0])} queries and {len(sides[1])} documents:"
            " give one document for each query"
        )
    return sides


def tags_as_bytes(tags: Any) -> bytes:
    """Converts tags to one text in UTF-8, with commas between; b"" for none.

    They are in Unicode's form NFC, in which an accent and its letter are one
    character.
    """
    if isinstance(tags, str | bytes) or not isinstance(tags, Iterable):
        raise InputError(
            f"expected a list of tags, got {tags!r:.60}; write [tag]"
        )
    checked = []
    for tag in as_bytes(tags):
        stripped = tag.strip()
        if not stripped or any(byte in b",\t\r\n" for byte in stripped):
            raise InputError(
                f"found the tag {tag!r:.60}, expected a tag that is not blank"
                " and has no comma, tab or line break"
            )
        text = stripped.decode("utf-8", "surrogateescape")
        composed = unicodedata.normalize("NFC", text)
        checked.append(composed.encode("utf-8", "surrogateescape"))
    return b",".join(checked)


def slices_of_size(
    sizes: Sequence[int] | np.ndarray, max_rows: int, max_size: int
) -> Iterator[slice]:
    """Divides rows of these sizes into slices of bounded length and size.

    A row above `max_size` is a slice by itself; no slice is empty.
    """
    start, total = 0, 0
    for row, size in enumerate(sizes):
        full = row - start == max_rows or total + size > max_size
        if row > start and full:
            yield slice(start, row)
            start, total = row, 0
        total += size
    if len(sizes):
        yield slice(start, len(sizes))


# Limits of one request: texts, bytes of texts, hits in the reply, and bytes of
# texts times hits to explain, half of what the exported graphs allow: servers
# that batch pad the rows.
_ROWS = 512
_BYTES = 1 << 19
_HITS = 1 << 18
_EXPLAINED = 1 << 21


def check_count(count: Any, name: str) -> None:
    """Checks a number of results, which is sent as int32."""
    whole = isinstance(count, numbers.Integral) and type(count) is not bool
    if not (whole and 1 <= count < 2**31):
        raise InputError(
            f"{name} is {count}; expected 1 or more, below 2**31, a whole"
            " number"
        )


def rows_for(k: int, name: str = "k") -> int:
    """Returns the maximum number of texts in a request for k results each.

    `name` is the name of k in the error.
    """
    check_count(k, name)
    return min(_ROWS, max(1, _HITS // k))


def chunked(
    texts: Iterable[str | bytes], max_rows: int = _ROWS
) -> Iterator[np.ndarray]:
    """Divides texts into object arrays of bytes, one for each request.

    An array has half a megabyte at most; a longer text is one by itself.
    """
    encoded = as_bytes(texts)
    for rows in slices_of_size(
        [len(text) for text in encoded], max_rows, _BYTES
    ):
        yield np.array(encoded[rows], object)


def chunked_with_count(
    texts: Iterable[str | bytes], count: int, name: str = "k", tags: bytes = b""
) -> Iterator[dict[str, np.ndarray]]:
    """Yields the inputs of requests that ask for `count` results for each text.

    The inputs are `text`, the number of results as `name` and, unless they are
    empty, `tags`.
    """
    for rows in chunked(texts, rows_for(count, name)):
        inputs = {"text": rows, name: np.full(len(rows), count, np.int32)}
        if tags:
            inputs["tags"] = np.full(len(rows), tags, object)
        yield inputs


def chunked_to_explain(
    texts: Iterable[str | bytes], k: int, tags: bytes
) -> Iterator[dict[str, np.ndarray]]:
    """Yields the inputs of requests that ask why k documents were found.

    The inputs are `text`, `k` and `tags`, which b"" leaves out. A reply names
    the words of each text k times, so a request has few texts if they are long,
    or k is large.
    """
    for rows in chunked(texts, rows_for(k)):
        sizes = [min(k, EXPLAINED_K) * len(text) for text in rows]
        for part in slices_of_size(sizes, len(rows), _EXPLAINED):
            count = len(rows[part])
            yield {
                "text": rows[part],
                "k": np.full(count, k, np.int32),
                "tags": np.full(count, tags, object),
            }


def chunked_pairs(
    queries: Sequence[bytes], documents: Sequence[bytes]
) -> Iterator[dict[str, np.ndarray]]:
    """Divides pairs into the inputs `query` and `document` of each request."""
    sizes = [
        len(query) + len(document)
        for query, document in zip(queries, documents, strict=True)
    ]
    for rows in slices_of_size(sizes, _ROWS, _BYTES):
        yield {
            "query": np.array(queries[rows], object),
            "document": np.array(documents[rows], object),
        }
