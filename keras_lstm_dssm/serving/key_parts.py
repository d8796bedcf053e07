"""KeyParts: key sentences and words, from the outputs of an exported KeyVec."""

from typing import NamedTuple

import numpy as np


class KeyParts(NamedTuple):
    """Holds the key sentences and the key words of a document.

    Attributes:
        sentences: Pairs of a sentence and its probability p_i, the most
            probable first.
        words: The words that the document's vector predicts, the most
            probable first. They need not occur in the document.
    """

    sentences: list[tuple[str, float]]
    words: list[str]


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
