"""Converts texts to inputs of served models, and outputs to hits.

Texts, pairs of texts and tags are checked and converted to UTF-8. Texts and
pairs are divided into chunks. A chunk has the texts of one request.
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
"""Version of a served model: a number, a label (a name in the server's
configuration, such as "canary"), or None for the newest version."""

DEFAULT = "serving_default"
"""The signature that runs if a request does not contain a signature's name."""

KEYS = "keys"
"""Signature of a KeyVec that returns key sentences and key words."""

FILTERED = "filtered"
"""Signature of a retriever that searches only documents with given tags."""

KNOWN_TAGS = "known_tags"
"""Signature of a retriever that lists the tags of its documents."""

EXPLAINED = "explained"
"""Signature of a hybrid retriever that explains its scores."""

EXPLAINED_K = 100
"""Maximum number of explained results for a query. A larger k counts as 100."""

HYBRID_PARTS = ("towers", "words", "bm25", "numbers", "hubness", "base")
"""The parts of a hybrid retriever's score, in the order of the output `parts`.
Their sum is the log-odds of a hit. Each part except `base` has a weight."""

EXPLAINED_PARTS = ("bm25", "numbers", "words")
"""The parts of the score that are divided among the words of the query."""

PREDICT = "tensorflow/serving/predict"
"""Method name of all SavedModel signatures that Predict can call."""


class TensorInfo(NamedTuple):
    """The dtype and the shape of an input or an output.

    Attributes:
        dtype: NumPy's name of the dtype, or `string`.
        shape: The size of each dimension, or None for a dimension of any size.
            `shape` itself is None if the tensor may have any rank.

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
        """Returns whether an array has this dtype and this shape."""
        if dtype_name(values) != self.dtype:
            return False
        return self.shape is None or (
            values.ndim == len(self.shape)
            and all(
                expected in (None, size)
                for expected, size in zip(self.shape, values.shape, strict=True)
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
    """Describes an input that does not fit; returns "" if all inputs fit."""
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
        score: Cosine of the query's and the document's vectors, from -1 to 1. A
            hybrid retriever's score is the probability that the document is
            relevant.
        title: The document's title, or the id if the retriever has no titles;
            "" in hits of `keras_lstm_dssm.evaluation.Index`.

    Example:
    >>> Hit("d1", 0.83, "hex bolt").title
    'hex bolt'
    """

    id: str
    score: float
    title: str = ""


class ExplainedHit(NamedTuple):
    """A document that a hybrid retriever returns, and reasons for its score.

    Attributes:
        id: See `Hit`.
        score: The probability that the document is relevant.
        parts: Name in `HYBRID_PARTS` -> weighted contribution to the log-odds
            of the score; 0 for a part that the retriever lacks.
        words: Name in `EXPLAINED_PARTS` -> word of the query -> the word's
            contribution.
        title: See `Hit`.
        weak: Whether the score is below the retriever's limit for weak hits.

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
        """The contributions of parts and words in one line; omits zeros."""
        return ", ".join(
            f"{name} {share:.2f}{_word_list(self.words.get(name, {}))}"
            for name, share in self.parts.items()
            if share
        )


def _word_list(shares: Mapping[str, float]) -> str:
    """Lists words in brackets, the largest contribution first."""
    ordered = sorted(shares.items(), key=lambda share: -abs(share[1]))
    listed = ", ".join(f"{word} {share:.2f}" for word, share in ordered)
    return f" ({listed})" if listed else ""


class KeyParts(NamedTuple):
    """The key sentences and the key words of a document.

    Attributes:
        sentences: Pairs of a sentence and the probability that the sentence is
            a key sentence, most probable first.
        words: Words that the document's vector predicts, most probable first.
            The document need not contain these words.

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
        version: The version's number; over HTTP, None if the request had no
            version number.
        signature: The signature's name.
        outputs: Name of an output -> array.

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
        code: "OK", or the error code if the version did not load.
        message: Why the version did not load, or empty.

    Example:
    >>> VersionStatus("AVAILABLE", "OK", "").state
    'AVAILABLE'
    """

    state: str
    code: str
    message: str


Outputs = Mapping[str, tuple[type, int]]
"""Outputs that a client expects: name -> NumPy dtype and rank. The rank counts
the batch dimension, too."""

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
"""Outputs that a retriever may lack."""

SCORE: Outputs = {"score": (np.float32, 1)}
KEY_PARTS: Outputs = {
    "sentences": (object, 2),
    "probabilities": (np.float32, 2),
    "words": (object, 2),
}


def checked_outputs(
    prediction: Prediction, outputs: Outputs, rows: int
) -> dict[str, np.ndarray]:
    """Checks and returns the outputs for `rows` texts, by name."""
    arrays = {}
    for name, (dtype, rank) in outputs.items():
        shape = ", ".join([str(rows), *["any"] * (rank - 1)])
        expected = (
            f"expected {np.dtype(dtype)} [{shape}]; give a model that"
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
    """Returns the hits in a retriever's outputs `[batch, width]`."""
    shown_titles = ids if titles is None else titles
    # The outputs are wider than k if the server has batched this request with a
    # request for a larger k.
    rows = (ids[:, :k], scores[:, :k].tolist(), shown_titles[:, :k])
    return [
        [
            Hit(
                key.decode(errors="replace"),
                score,
                title.decode(errors="replace"),
            )
            for key, score, title in zip(*row, strict=True)
            if key  # empty in columns without a hit
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
    """Returns the hits in the outputs of the signature `explained`."""
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
            # The outputs may be wider than the number of hits.
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
    """Returns the number of documents of each tag; the outputs have one row."""
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
    """Returns the key parts in the outputs `[batch, width]` of a KeyVec."""
    return [
        KeyParts(
            [
                (sentence.decode(errors="replace"), p)
                for sentence, p in zip(*row, strict=True)
                if p
            ],
            [word.decode() for word in key_words if word],
        )
        for *row, key_words in zip(
            sentences[:, :n],
            probabilities[:, :n].tolist(),
            words[:, :n],
            strict=True,
        )
    ]


_NEAREST = 3


def tag_name(tag: bytes) -> bytes:
    """Returns `name:` of a tag `name:value`, or the tag if it has no colon."""
    name, colon, _ = tag.partition(b":")
    return name + colon


def by_name(tags: bytes) -> list[list[bytes]]:
    """Groups comma-separated tags by `tag_name`."""
    groups: dict[bytes, list[bytes]] = {}
    for tag in tags.split(b","):
        groups.setdefault(tag_name(tag), []).append(tag)
    return [*groups.values()]


def check_known(model: str, tags: bytes, known: Mapping[str, int]) -> None:
    """Raises `InputError` if one of the comma-separated `tags` is unknown."""
    for tag in tags.decode(errors="replace").split(","):
        if tag in known:
            continue
        by_folded = {name.casefold(): name for name in known}
        similar = get_close_matches(tag.casefold(), by_folded, _NEAREST)
        suggestions = [by_folded[name] for name in similar] or [*known][
            :_NEAREST
        ]
        raise InputError(
            f"{model}: found the tag {tag!r:.60}, which no document has:"
            f" give another, such as {', '.join(suggestions)}"
        )


def facets(known: Sequence[str], most: int) -> dict[str, list[str]]:
    """Groups tags `name:value` by name: returns a list of tags for each name.

    Leaves out tags without a colon, and names with `most` tags or more.

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
    """Converts an iterable of strings or bytes to a list of UTF-8 bytes."""
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
    """Returns the index of each distinct value's first occurrence.

    Also returns each value's index among the distinct values, `[n]`.
    """
    positions: dict[Any, int] = {}
    inverse = [positions.setdefault(value, len(positions)) for value in values]
    first = np.unique(inverse, return_index=True)[1].tolist()
    return first, np.array(inverse, np.intp)


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
    except UnicodeEncodeError:  # a surrogate that stands for no byte
        return text.encode("utf-8", "replace")


def query_as_bytes(query: Any) -> bytes:
    """Converts one query to UTF-8 bytes."""
    if not isinstance(query, str | bytes):
        raise InputError(
            f"query is {query!r:.60} ({type(query).__name__}), expected"
            " one text"
        )
    return as_bytes([query])[0]


def pairs_as_bytes(
    queries: Any, documents: Any
) -> tuple[list[bytes], list[bytes]]:
    """Converts n queries and n documents to UTF-8 bytes."""
    sides = as_bytes(queries), as_bytes(documents)
    if len(sides[0]) != len(sides[1]):
        raise InputError(
            f"found {len(sides[0])} queries and {len(sides[1])} documents:"
            " give one document for each query"
        )
    return sides


def tags_as_bytes(tags: Any) -> bytes:
    """Joins tags with commas, in UTF-8 and Unicode's form NFC."""
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
    """Divides rows into non-empty slices of at most `max_rows` rows.

    The total size of a slice is at most `max_size`, or the slice has one row.
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


# Limits of one request. Exported graphs allow at least twice as many hits and
# explanations, because a server that batches adds rows as padding.
_ROWS = 512  # number of texts
_BYTES = 1 << 19  # bytes of all texts together
_HITS = 1 << 18  # hits in the reply
_EXPLAINED = 1 << 21  # bytes of a text times its hits, summed over texts


def check_count(count: Any, name: str) -> None:
    """Checks that a number of results is a positive int32."""
    is_integer = isinstance(count, numbers.Integral) and type(count) is not bool
    if not (is_integer and 1 <= count < 2**31):
        raise InputError(
            f"{name} is {count}; expected a whole number from 1, below 2**31"
        )


def rows_for(k: int, name: str = "k") -> int:
    """Returns how many texts a request for k results per text may have."""
    check_count(k, name)
    return min(_ROWS, max(1, _HITS // k))


def chunked(
    texts: Iterable[str | bytes], max_rows: int = _ROWS
) -> Iterator[np.ndarray]:
    """Divides texts into object arrays of bytes, one for each request."""
    encoded = as_bytes(texts)
    for rows in slices_of_size(
        [len(text) for text in encoded], max_rows, _BYTES
    ):
        yield np.array(encoded[rows], object)


def chunked_with_count(
    texts: Iterable[str | bytes], count: int, name: str = "k", tags: bytes = b""
) -> Iterator[dict[str, np.ndarray]]:
    """Yields inputs of requests for `count` results for each text."""
    for rows in chunked(texts, rows_for(count, name)):
        inputs = {"text": rows, name: np.full(len(rows), count, np.int32)}
        if tags:
            inputs["tags"] = np.full(len(rows), tags, object)
        yield inputs


def chunked_to_explain(
    texts: Iterable[str | bytes], k: int, tags: bytes
) -> Iterator[dict[str, np.ndarray]]:
    """Yields inputs of requests for explanations, limited by `_EXPLAINED`."""
    for rows in chunked(texts, rows_for(k)):
        sizes = [min(k, EXPLAINED_K) * len(text) for text in rows]
        for chunk in slices_of_size(sizes, len(rows), _EXPLAINED):
            count = len(rows[chunk])
            yield {
                "text": rows[chunk],
                "k": np.full(count, k, np.int32),
                "tags": np.full(count, tags, object),
            }


def chunked_pairs(
    queries: Sequence[bytes], documents: Sequence[bytes]
) -> Iterator[dict[str, np.ndarray]]:
    """Yields the inputs `query` and `document` of each request."""
    sizes = [
        len(query) + len(document)
        for query, document in zip(queries, documents, strict=True)
    ]
    for rows in slices_of_size(sizes, _ROWS, _BYTES):
        yield {
            "query": np.array(queries[rows], object),
            "document": np.array(documents[rows], object),
        }
