"""Whether the words that a model drops are stop words."""

import string
from collections.abc import Sequence

import numpy as np
from bm25s.stopwords import STOPWORDS_EN_PLUS

from keras_lstm_dssm.analysis.finding import NOTHING, Finding, against

_STOP = frozenset(STOPWORDS_EN_PLUS)


def is_stop(words: Sequence[str]) -> np.ndarray:
    """Tells which words are English stop words, bool `[words]`.

    The 179 of NLTK's list, as bm25s has it; punctuation at a word's ends
    does not count.

    Example:
    >>> is_stop(["the", "array,", "of"]).tolist()
    [True, False, True]
    """
    bare = (word.strip(string.punctuation) for word in words)
    return np.array([word in _STOP for word in bare], bool)


def stop_share(
    stop: Sequence[np.ndarray],
    chosen: Sequence[np.ndarray],
    judged: Sequence[np.ndarray],
    draws: int = 2000,
    seed: int = 0,
) -> Finding:
    """Measures how many of the chosen words are stop words.

    Chance chooses as many of each text's judged words.

    Args:
        stop: bool `[words]` for each text.
        chosen: The same: words that the model dropped, or kept.
        judged: The same: words that it could choose from, all of `chosen`
            among them.
        draws: Random choices.
        seed: Of these.

    Returns:
        Shares of the chosen words, from 0 to 1; counted are chosen words.

    Example:
    >>> one = np.array([True, False])
    >>> stop_share([one], [one], [one | True])[:2]
    (1.0, 0.5)
    """
    sizes = np.array(
        [
            [np.sum(s & j), np.sum(~s & j), np.sum(c), np.sum(s & c)]
            for s, c, j in zip(stop, chosen, judged, strict=True)
            if c.any()
        ]
    ).reshape(-1, 4)
    good, bad, taken, found = sizes.T
    total = int(taken.sum())
    if not total:
        return NOTHING
    random = np.random.default_rng(seed)
    drawn = random.hypergeometric(good, bad, taken, (draws, len(sizes)))
    return against(drawn.sum(axis=1) / total, found.sum() / total, total)
