"""What each word changes in a text's vector and in a pair's cosine."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_lstm_dssm.analysis.activations import words_of
from keras_lstm_dssm.analysis.word_statistics import NOTHING, Finding
from keras_lstm_dssm.encoders import TextEncoder
from keras_lstm_dssm.evaluation.significance import randomisation_test

SIDES = ("query", "title")
"""What the two towers read, in this order."""


class Growth(NamedTuple):
    """R(Q, D) while one side is read and the other is whole, (3).

    Attributes:
        query: Words of the query.
        by_query: float `[query words]`, after each of them.
        document: Words of the title.
        by_document: float `[title words]`.
    """

    query: tuple[str, ...]
    by_query: np.ndarray
    document: tuple[str, ...]
    by_document: np.ndarray


def growth(model: Any, query: str, document: str) -> Growth:
    """Follows the cosine as the query, and as the title, is read.

    Works for every encoder: the beginnings of a text are encoded as texts.

    Args:
        model: A `TwoTower`.
        query: A query.
        document: A title.

    Example:
    >>> growth(model, "hotels in shanghai", "shanghai hotels").by_query
    array([0.61, 0.6, 0.93], dtype=float32)
    """
    words = [
        words_of(encoder, [text])[0]
        for encoder, text in (
            (model.query_encoder, query),
            (model.document_encoder, document),
        )
    ]
    queries = model.query_encoder.encode(_beginnings(words[0]))
    documents = model.document_encoder.encode(_beginnings(words[1]))
    return Growth(
        words[0], queries @ documents[-1], words[1], documents @ queries[-1]
    )


def _beginnings(words: Sequence[str]) -> list[str]:
    return [" ".join(words[: end + 1]) for end in range(len(words))]


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


_DRAWS = 4


def kept_cosine(
    encoder: TextEncoder,
    texts: Sequence[Sequence[str]],
    others: np.ndarray,
    chosen: Sequence[np.ndarray],
    judged: Sequence[np.ndarray],
    seed: int = 0,
) -> Finding:
    """Measures the cosine that is left when only chosen words are read.

    Chance keeps as many of each text's judged words. Texts of which all
    judged words are chosen, or none, say nothing and are left out.

    Args:
        encoder: Of the texts.
        texts: The words of each.
        others: Float `[texts, dimension]`, unit vectors of the other side.
        chosen: bool `[words]` for each text: the words to keep.
        judged: The same: words that could be kept.
        seed: Of the random words.

    Returns:
        Mean cosine of what is kept, as a share of the mean cosine of the
        whole texts; p is of the paired differences, by randomisation.
    """
    rows = [
        row
        for row in range(len(texts))
        if 0 < chosen[row].sum() < judged[row].sum()
    ]
    if not rows:
        return NOTHING
    random = np.random.default_rng(seed)
    picks = [[np.ones(len(texts[row]), bool), chosen[row]] for row in rows]
    for row, pick in zip(rows, picks, strict=True):
        for _ in range(_DRAWS):
            drawn = np.zeros(len(texts[row]), bool)
            drawn[
                random.choice(
                    np.flatnonzero(judged[row]), chosen[row].sum(), False
                )
            ] = True
            pick.append(drawn)
    kept = [
        " ".join(np.array(texts[row], object)[mask])
        for row, pick in zip(rows, picks, strict=True)
        for mask in pick
    ]
    vectors = encoder.encode(kept).reshape(len(rows), 2 + _DRAWS, -1)
    cosines = np.einsum("nkd,nd->nk", vectors, others[rows])
    whole, found, chance = (
        cosines[:, 0], cosines[:, 1], cosines[:, 2:].mean(axis=1)
    )  # fmt: skip
    p = randomisation_test(found - chance, 10_000, seed)[0]
    mean = whole.mean()
    return Finding(
        float(found.mean() / mean),
        float(chance.mean() / mean),
        float(p),
        len(rows),
    )
