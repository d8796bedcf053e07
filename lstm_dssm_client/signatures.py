"""Signatures of served models, and the types of what clients return."""

import json
from collections.abc import Mapping
from typing import NamedTuple

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
