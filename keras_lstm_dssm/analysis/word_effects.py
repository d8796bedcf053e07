"""The effect of each word on the vector of a text and on a cosine."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_lstm_dssm.analysis.activations import words_of
from keras_lstm_dssm.analysis.vector_parts import common_parts, part_products
from keras_lstm_dssm.encoders import TextEncoder

SIDES = ("query", "document")
"""What the two encoders of a `TwoTower` read, in this order."""


class Growth(NamedTuple):
    """The cosine R(Q, D) of (3) after each word of one text.

    The other text is always complete, so that the last cosines of both texts
    are equal: they are the cosine of the pair.

    Attributes:
        query_words: The words of the query.
        query_cosines: float `[query words]`, after each word of the query.
        document_words: The words of the document's title.
        document_cosines: float `[document words]`, after each of them.
        parts: The names of the parts of the vectors, see `vector_parts`.
        query_parts: float `[query words, parts]`: what each part adds to
            `query_cosines`.
        document_parts: float `[document words, parts]`, in the same way.

    Example:
    >>> model = dssm.TwoTower(dssm.LSTMEncoder(4), dssm.LSTMEncoder(4))
    >>> found = growth(model, "hex bolt", "steel hex bolt")
    >>> found.document_words, found.query_cosines.shape
    (('steel', 'hex', 'bolt'), (2,))
    >>> bool(np.isclose(found.query_cosines[-1], found.document_cosines[-1]))
    True
    """

    query_words: tuple[str, ...]
    query_cosines: np.ndarray
    document_words: tuple[str, ...]
    document_cosines: np.ndarray
    parts: tuple[str, ...]
    query_parts: np.ndarray
    document_parts: np.ndarray


def growth(model: Any, query: str, document: str) -> Growth:
    """Compute the cosine of a pair after each word of either text.

    It works for every encoder, because the first words of a text are encoded
    as a text.

    Args:
        model: A `TwoTower`.
        query: A query.
        document: The title of a document.

    Example:
    >>> growth(model, "hotels in shanghai", "shanghai hotels").query_cosines
    array([0.61, 0.6, 0.93], dtype=float32)
    """
    query_words = words_of(model.query_encoder, [query])[0]
    document_words = words_of(model.document_encoder, [document])[0]
    queries = model.query_encoder.encode(_beginnings(query_words))
    documents = model.document_encoder.encode(_beginnings(document_words))
    parts = common_parts(model)
    return Growth(
        query_words,
        queries @ documents[-1],
        document_words,
        documents @ queries[-1],
        tuple(part.name for part in parts),
        part_products(parts, queries, documents[-1]),
        part_products(parts, documents, queries[-1]),
    )


def _beginnings(words: Sequence[str]) -> list[str]:
    return [" ".join(words[: end + 1]) for end in range(len(words))]


class WordEffect(NamedTuple):
    """The effect of one word on the vector of its text.

    Attributes:
        word: The word.
        change: 1 - cosine of the vectors with and without it, from 0 to 2.
            An encoder attenuates a word with a small change.
        cosine: What it adds to the inner product with another vector; None
            where there was none.

    Example:
    >>> effects = attenuation(dssm.LSTMEncoder(4), "hotels in shanghai")
    >>> [effect.word for effect in effects]
    ['hotels', 'in', 'shanghai']
    """

    word: str
    change: float
    cosine: float | None


def attenuation(
    encoder: TextEncoder, text: str, other: np.ndarray | None = None
) -> list[WordEffect]:
    """Encode a text without each of its words, and compare the vectors.

    It works for every encoder.

    Args:
        encoder: The encoder of the text.
        text: The text, of which each word is left out once.
        other: Float `[dimension]`, a unit vector to compute `cosine` with;
            by default None.

    Returns:
        A `WordEffect` for each word, in the order of the words.

    Example:
    >>> attenuation(encoder, "hotels in shanghai")[1]
    WordEffect(word='in', change=0.013, cosine=None)
    """
    words = words_of(encoder, [text])[0]
    whole, *rest = encoder.encode([" ".join(words), *_without(words)])
    return [
        WordEffect(
            word,
            float(1 - whole @ vector),
            None if other is None else float((whole - vector) @ other),
        )
        for word, vector in zip(words, rest, strict=True)
    ]


def each_change(
    encoder: TextEncoder, texts: Sequence[Sequence[str]]
) -> list[np.ndarray]:
    """Return `WordEffect.change` of every word of many texts.

    Args:
        encoder: The encoder of the texts.
        texts: The words of each text, from `words_of`.

    Returns:
        A float array `[words]` for each text.
    """
    whole = encoder.encode([" ".join(words) for words in texts])
    without = encoder.encode([t for words in texts for t in _without(words)])
    ends = np.cumsum([len(words) for words in texts])
    return [
        1 - vectors @ vector
        for vectors, vector in zip(
            np.split(without, ends[:-1]), whole, strict=True
        )
    ]


def _without(words: Sequence[str]) -> list[str]:
    """Return the text without word 0, without word 1, and so on."""
    return [
        " ".join([*words[:left_out], *words[left_out + 1 :]])
        for left_out in range(len(words))
    ]
