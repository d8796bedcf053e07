"""Attenuation: how little a text's vector changes without a word."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from keras_lstm_dssm.analysis.activations import words_of
from keras_lstm_dssm.encoders import TextEncoder


class WordEffect(NamedTuple):
    """What one word adds to the vector of its text.

    Attributes:
        word: The word.
        change: 1 - cosine of the vectors with and without it, 0 to 2.
        cosine: What it adds to the cosine with another vector; None without.
    """

    word: str
    change: float
    cosine: float | None


def attenuation(
    encoder: TextEncoder, text: str, other: np.ndarray | None = None
) -> list[WordEffect]:
    """Leaves out one word after the other.

    Works for every encoder, DSSM and CLSM included. A word is attenuated
    when the vector hardly changes without it.

    Args:
        encoder: Of the text.
        text: One text.
        other: `[dimension]`, unit length: a vector to be near to.

    Returns:
        One for each word, in the order of the words.

    Example:
    >>> attenuation(encoder, "hotels in shanghai")[1]
    WordEffect(word='in', change=0.013, cosine=None)
    """
    words = words_of(encoder, [text])[0]
    whole, *parts = encoder.encode([" ".join(words), *_without(words)])
    return [
        WordEffect(
            word,
            float(1 - whole @ part),
            None if other is None else float((whole - part) @ other),
        )
        for word, part in zip(words, parts, strict=True)
    ]


def each_change(
    encoder: TextEncoder, texts: Sequence[Sequence[str]]
) -> list[np.ndarray]:
    """Returns the `change` of each word of many texts, encoded together.

    Args:
        encoder: Of the texts.
        texts: The words of each, from `words_of`.

    Returns:
        `[words]` for each text.
    """
    whole = encoder.encode([" ".join(words) for words in texts])
    parts = encoder.encode([t for words in texts for t in _without(words)])
    ends = np.cumsum([len(words) for words in texts])
    return [
        1 - part @ vector
        for part, vector in zip(np.split(parts, ends[:-1]), whole, strict=True)
    ]


def _without(words: Sequence[str]) -> list[str]:
    return [
        " ".join([*words[:place], *words[place + 1 :]])
        for place in range(len(words))
    ]
