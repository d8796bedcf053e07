"""Figures beside chance: a known effect is measured, and none without one."""

import numpy as np
import pytest

from keras_lstm_dssm.analysis.claims import (
    compare_with_draws,
    is_stop_word,
    remaining_cosine,
    stop_word_share,
)

ON, OFF = True, False


class Letters:
    """Counts letters, so that what a word adds to a vector is known."""

    def encode(self, texts: list[str]) -> np.ndarray:
        counts = np.array([[t.count(c) for c in "abcd"] for t in texts], float)
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)


def test_p_counts_draws_as_far_off() -> None:
    draws = np.array([0.0, 1.0, 2.0, 3.0])
    assert compare_with_draws(draws, 3.0, 7) == (3.0, 1.5, 2 * 2 / 5, 7)
    assert compare_with_draws(draws, 9.0, 7).p == 2 * 1 / 5
    assert compare_with_draws(draws, -1.0, 7).p == 2 * 1 / 5
    assert compare_with_draws(np.ones(4), 1.0, 7).p == 1


def test_stop_words() -> None:
    words = ["the", "The", "of,", "(in)", "array", ""]
    assert is_stop_word(words).tolist() == [ON, OFF, ON, ON, OFF, OFF]
    stop = [np.array([ON, OFF, OFF, OFF])] * 40
    every = [np.array([ON] * 4)] * 40
    found = stop_word_share(stop, stop, every)
    assert (found.value, found.number) == (1, 40)
    assert found.chance == pytest.approx(0.25, abs=0.01)
    assert found.p == pytest.approx(2 / 2001)
    # The word at another place each time: chance.
    drawn = np.random.default_rng(0).permuted(np.array(stop), axis=1)
    assert stop_word_share(stop, list(drawn), every).p > 0.05
    # Words that could not be chosen do not count.
    judged = [np.array([ON, ON, OFF, OFF])] * 40
    assert stop_word_share(stop, stop, judged).chance == pytest.approx(
        0.5, abs=0.01
    )
    none = [np.zeros(4, bool)]
    assert stop_word_share(stop[:1], none, every[:1]).number == 0


def test_remaining_cosine() -> None:
    texts = [("a", "b", "c")] * 12 + [("a",)]
    others = np.tile([1.0, 0, 0, 0], (13, 1))
    every = [np.ones(len(words), bool) for words in texts]
    first = [np.array([ON, OFF, OFF][: len(words)]) for words in texts]
    found = remaining_cosine(Letters(), texts, others, first, every)
    # The whole has a cosine of 1 / sqrt(3); chance keeps "a" in a third.
    assert found.value == pytest.approx(3**0.5)
    assert found.chance == pytest.approx(3**0.5 / 3, abs=0.3)
    assert (found.p < 0.01, found.number) == (True, 12)
    judged = [mask if len(mask) == 1 else ~mask for mask in first]
    second = [np.array([OFF, ON, OFF][: len(words)]) for words in texts]
    found = remaining_cosine(Letters(), texts, others, second, judged)
    assert (found.value, found.chance, found.p) == (0, 0, 1)
