"""Compare measures of chosen words with those of random words."""

import string
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from bm25s.stopwords import STOPWORDS_EN_PLUS

from keras_lstm_dssm.encoders import TextEncoder
from keras_lstm_dssm.evaluation.significance import randomisation_test


class ChanceComparison(NamedTuple):
    """A measure of a choice, compared with that of random choices.

    Attributes:
        value: The measure of the actual choice.
        chance: Its mean over random choices.
        p: The two-sided p-value: how often a random choice is as far from
            the mean as `value` is.
        number: The number of texts or words that it is computed from; 0
            where there was nothing to compare.
    """

    value: float
    chance: float
    p: float
    number: int


NO_COMPARISON = ChanceComparison(0.0, 0.0, 1.0, 0)
"""The result where there is nothing to compare."""


def compare_with_draws(
    draws: np.ndarray, value: float, number: int
) -> ChanceComparison:
    """Compare a measure with random draws of it (a Monte Carlo test).

    Args:
        draws: `[draws]`, the measure of each random choice.
        value: The measure of the actual choice.
        number: See `ChanceComparison`.

    Example:
    >>> compare_with_draws(np.array([1.0, 2.0, 1.0]), 3.0, 10)
    ChanceComparison(value=3.0, chance=1.3333333333333333, p=0.5, number=10)
    """
    above = (1 + np.sum(draws >= value)) / (1 + len(draws))
    below = (1 + np.sum(draws <= value)) / (1 + len(draws))
    p = min(1.0, 2 * float(min(above, below)))
    return ChanceComparison(value, float(draws.mean()), p, number)


_STOP_WORDS = frozenset(STOPWORDS_EN_PLUS)
_DRAWS = 2000


def is_stop_word(words: Sequence[str]) -> np.ndarray:
    """Return which words are English stop words, bool `[words]`.

    Stop words are the 179 of NLTK's list, which bm25s contains. Punctuation
    before and after a word is ignored.

    Example:
    >>> is_stop_word(["the", "array,", "of"]).tolist()
    [True, False, True]
    """
    bare = (word.strip(string.punctuation) for word in words)
    return np.array([word in _STOP_WORDS for word in bare], bool)


def stop_word_share(
    stop: Sequence[np.ndarray],
    chosen: Sequence[np.ndarray],
    candidates: Sequence[np.ndarray],
) -> ChanceComparison:
    """Compute the share of stop words among the words that a model chose.

    A random choice takes equally many words from each text's candidates.

    Args:
        stop: bool `[words]` for each text: which words are stop words.
        chosen: bool `[words]` for each text: the words that the model chose.
        candidates: bool `[words]` for each text: the words that the model
            could choose from; they include the chosen ones.

    Returns:
        Shares from 0 to 1; `number` is that of the chosen words.

    Example:
    >>> mask = np.array([True, False])
    >>> float(stop_word_share([mask], [mask], [mask | True])[0])
    1.0
    """
    sizes = np.array(
        [
            [np.sum(s & k), np.sum(~s & k), np.sum(c), np.sum(s & c)]
            for s, c, k in zip(stop, chosen, candidates, strict=True)
            if c.any()
        ]
    ).reshape(-1, 4)
    stop_words, others, sample_sizes, chosen_stop_words = sizes.T
    total = int(sample_sizes.sum())
    if not total:
        return NO_COMPARISON
    random_counts = np.random.default_rng(0).hypergeometric(
        stop_words, others, sample_sizes, (_DRAWS, len(sizes))
    )
    return compare_with_draws(
        random_counts.sum(axis=1) / total,
        chosen_stop_words.sum() / total,
        total,
    )


_RANDOM_CHOICES = 4  # of each text


def remaining_cosine(
    encoder: TextEncoder,
    texts: Sequence[Sequence[str]],
    others: np.ndarray,
    chosen: Sequence[np.ndarray],
    candidates: Sequence[np.ndarray],
) -> ChanceComparison:
    """Compute the cosine that remains when only the chosen words are read.

    A random choice takes equally many words from each text's candidates.
    Texts of which all candidates are chosen, or none, are left out, because
    they have only one random choice.

    Args:
        encoder: The encoder of the texts.
        texts: The words of each text.
        others: Float `[texts, dimension]`: for each text, the unit vector of
            the text that it is paired with.
        chosen: bool `[words]` for each text: the words to read.
        candidates: bool `[words]` for each text, see `stop_word_share`.

    Returns:
        Mean cosines of the chosen words as shares of the mean cosine of the
        whole texts; `p` is of the randomisation test of the differences by
        text, and `number` is that of the texts.
    """
    rows = [
        row
        for row in range(len(texts))
        if 0 < chosen[row].sum() < candidates[row].sum()
    ]
    if not rows:
        return NO_COMPARISON
    random = np.random.default_rng(0)
    shortened = []
    for row in rows:
        masks = [np.ones(len(texts[row]), bool), chosen[row]]
        for _ in range(_RANDOM_CHOICES):
            mask = np.zeros(len(texts[row]), bool)
            positions = np.flatnonzero(candidates[row])
            mask[random.choice(positions, chosen[row].sum(), False)] = True
            masks.append(mask)
        words = np.array(texts[row], object)
        shortened += [" ".join(words[mask]) for mask in masks]
    vectors = encoder.encode(shortened).reshape(
        len(rows), 2 + _RANDOM_CHOICES, -1
    )
    cosines = np.einsum("nkd,nd->nk", vectors, others[rows])
    whole, value = cosines[:, 0], cosines[:, 1]
    chance = cosines[:, 2:].mean(axis=1)
    p = randomisation_test(value - chance, 10_000, 0)[0]
    return ChanceComparison(
        float(value.mean() / whole.mean()),
        float(chance.mean() / whole.mean()),
        float(p),
        len(rows),
    )
