"""What a client returns: hits, key parts, predictions, states of versions."""

from typing import NamedTuple

import numpy as np

Version = int | str | None
"""Which version of a served model to ask: its number, its label (a name that
the server's configuration gives it, such as "canary"), or None for the
newest."""


class Hit(NamedTuple):
    """One document that a search returns.

    Attributes:
        id: The document's id.
        score: Cosine of the query's and the document's vector, from -1 to 1.

    Example:
    >>> Hit("d1", 0.83).id
    'd1'
    """

    id: str
    score: float


class KeyParts(NamedTuple):
    """Holds the key sentences and the key words of a document.

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
    """Holds the reply of a server to a Predict request.

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
    """Holds the state of one version of a model on a server.

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


def hits_from_outputs(
    ids: np.ndarray, scores: np.ndarray, k: int
) -> list[list[Hit]]:
    """Returns the hits in a retriever's outputs.

    Args:
        ids: Ids of documents, bytes `[batch, width]`, best first; empty where
            a row has no further hit.
        scores: Scores of the documents, float32 `[batch, width]`.
        k: Maximum number of hits for a query. The width is larger if the
            server batched the request with another one of a larger k.
    """
    return [
        [
            Hit(key.decode(errors="replace"), score)
            for key, score in zip(*row, strict=True)
            if key
        ]
        for row in zip(ids[:, :k], scores[:, :k].tolist(), strict=True)
    ]


def key_parts_from_outputs(
    sentences: np.ndarray, probabilities: np.ndarray, words: np.ndarray, n: int
) -> list[KeyParts]:
    """Converts the outputs of the signature `keys`.

    Args:
        sentences: Bytes `[batch, width]`, most probable first.
        probabilities: Float32 `[batch, width]`, 0 where a document has no
            further sentence.
        words: Bytes `[batch, width]`, empty where there are no further words.
        n: Maximum number for a document. The width is larger if the server
            batched the request with another one of a larger n.
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
