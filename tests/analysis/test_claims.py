"""The figures: a known effect is found, and none where there is none."""

import numpy as np
import pytest

from keras_lstm_dssm.analysis.claims import LABELS, measure_claims
from keras_lstm_dssm.analysis.coherence import (
    Assignments,
    Likeness,
    assign,
    coherence,
    likeness,
)
from keras_lstm_dssm.analysis.keywords import topics
from keras_lstm_dssm.analysis.word_effects import kept_cosine
from keras_lstm_dssm.analysis.word_statistics import (
    against,
    is_stop,
    stop_share,
)
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.models import TwoTower
from tests.conftest import TOPICS
from tests.encoders import small
from tests.encoders.small import small_encoder

ON, OFF = True, False


class Letters:
    """Counts letters: what a kept word adds is known."""

    def encode(self, texts: list[str]) -> np.ndarray:
        counts = np.array([[t.count(c) for c in "abcd"] for t in texts], float)
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)


def test_p_counts_draws_as_far_off() -> None:
    draws = np.array([0.0, 1.0, 2.0, 3.0])
    assert against(draws, 3.0, 7) == (3.0, 1.5, 2 * 2 / 5, 7)
    assert against(draws, 9.0, 7).p == 2 * 1 / 5
    assert against(draws, -1.0, 7).p == 2 * 1 / 5
    assert against(np.ones(4), 1.0, 7).p == 1


def test_stop_words() -> None:
    words = ["the", "The", "of,", "(in)", "array", ""]
    assert is_stop(words).tolist() == [ON, OFF, ON, ON, OFF, OFF]
    stop = [np.array([ON, OFF, OFF, OFF])] * 40
    every = [np.array([ON] * 4)] * 40
    found = stop_share(stop, stop, every)
    assert (found.found, found.number) == (1, 40)
    assert found.chance == pytest.approx(0.25, abs=0.01)
    assert found.p == pytest.approx(2 / 2001)
    # The word at another place each time: chance.
    drawn = np.random.default_rng(0).permuted(np.array(stop), axis=1)
    assert stop_share(stop, list(drawn), every).p > 0.05
    # Words that could not be chosen do not count.
    judged = [np.array([ON, ON, OFF, OFF])] * 40
    assert stop_share(stop, stop, judged).chance == pytest.approx(0.5, abs=0.01)
    none = [np.zeros(4, bool)]
    assert stop_share(stop[:1], none, every[:1]).number == 0


def test_kept_cosine() -> None:
    texts = [("a", "b", "c")] * 12 + [("a",)]
    others = np.tile([1.0, 0, 0, 0], (13, 1))
    every = [np.ones(len(words), bool) for words in texts]
    first = [np.array([ON, OFF, OFF][: len(words)]) for words in texts]
    found = kept_cosine(Letters(), texts, others, first, every)
    # The whole has a cosine of 1 / sqrt(3); chance keeps "a" in a third.
    assert found.found == pytest.approx(3**0.5)
    assert found.chance == pytest.approx(3**0.5 / 3, abs=0.3)
    assert (found.p < 0.01, found.number) == (True, 12)
    judged = [mask if len(mask) == 1 else ~mask for mask in first]
    second = [np.array([OFF, ON, OFF][: len(words)]) for words in texts]
    found = kept_cosine(Letters(), texts, others, second, judged)
    assert (found.found, found.chance, found.p) == (0, 0, 1)


def two_topics(mixed: bool) -> Assignments:
    """30 texts of two words, on one topic and taken by one of two cells."""
    random = np.random.default_rng(1)
    topic = np.arange(30) % 2
    cell = random.permutation(topic) if mixed else topic
    words = np.array(
        [f"{'xz'[t]}{random.integers(6)}" for t in topic for _ in "ab"], object
    )
    text = np.repeat(np.arange(30), 2)
    return Assignments(cell[:, None], text, np.zeros(60, int), words, 4)


def test_coherence() -> None:
    words = {f"{kind}{n}": i * 6 + n for i, kind in enumerate("xz")
             for n in range(6)}  # fmt: skip
    alike = Likeness(words, np.repeat(np.eye(2, dtype="float32"), 6, axis=0))
    encoder = small_encoder("rnn")
    found = coherence(encoder, two_topics(mixed=False), alike)
    assert found.found == pytest.approx(1)
    assert (found.chance < 0.7, found.p) == (True, 2 / 500)
    assert coherence(encoder, two_topics(mixed=True), alike).p > 0.05
    # Every pair of one topic shares "#x" or "#z" only, no trigram.
    apart = coherence(encoder, two_topics(mixed=False), alike, spelling=False)
    assert apart.found == pytest.approx(1)


def test_texts_of_one_word_assign_nothing() -> None:
    encoder = small_encoder("rnn")
    given = assign(encoder, ["pizza", "glue"], 2, 0.2)
    assert (given.active.shape, len(given.word)) == ((2, 2), 0)
    alike = Likeness({"glue": 0}, np.ones((1, 1), "float32"))
    assert coherence(encoder, given, alike).number == 0


def test_pairs_that_share_a_trigram_can_be_left_out() -> None:
    given = Assignments(
        np.array([[0], [0]]), np.array([0, 1]), np.array([0, 0]),
        np.array(["hotel", "hotels"], object), 4,
    )  # fmt: skip
    alike = Likeness({"hotel": 0, "hotels": 1}, np.ones((2, 1), "float32"))
    encoder = small_encoder("rnn")
    assert coherence(encoder, given, alike).found == 1
    assert coherence(encoder, given, alike, spelling=False).found == 0


def test_likeness_is_the_company_of_words() -> None:
    trades = [("drill", "bit", "kit"), ("glue", "wood", "oz")]
    contexts = [(x, y) for t in trades for x in t for y in t if x != y] * 2
    alike = likeness(contexts)
    near = alike.vectors @ alike.vectors[alike.words["drill"]]
    assert near[alike.words["bit"]] > near[alike.words["glue"]]
    assert likeness([*contexts, ("once",)]).words.keys() == alike.words.keys()
    with pytest.raises(InputError, match="2 contexts: found no two words"):
        likeness(contexts[:2])


@pytest.mark.parametrize("name", ["lstm_full_forget", "bilstm"])
def test_assignments_are_those_of_the_topics(name) -> None:
    encoder = small_encoder(name)
    texts = ["fried chicken recipes", "pizza", "sinus infections"]
    given = assign(encoder, texts, 2, 0.2)
    assert given.active.shape == (3, 4 if name == "bilstm" else 2)
    found = sorted(
        zip(given.active[given.text, given.slot], given.word, given.text,
            strict=True)
    )  # fmt: skip
    assert found == sorted(
        (cell, *word)
        for cell, taken in topics(encoder, texts, 2, 0.2).items()
        for word in taken
    )


@pytest.mark.parametrize("name", ["bilstm", "dssm"])
def test_all_claims(name, monkeypatch) -> None:
    # The same weights whichever tests run before: others have no keyword.
    monkeypatch.setattr(small, "RANDOM", np.random.default_rng(2))
    model = TwoTower(small_encoder(name), small_encoder(name))
    pairs = [(f"a {query} of the", title) for query, title in TOPICS.values()]
    contexts = [" ".join(pair) for pair in pairs] * 3
    claims = measure_claims(model, pairs, contexts, cells=4, change=0.6)
    expected = list(LABELS) if name == "bilstm" else [
        "stop_words_of_least_effect", "cosine_of_strong_half",
    ]  # fmt: skip
    found = {(c.claim, c.side, c.model) for c in claims}
    assert found == {
        (claim, side, which)
        for claim in expected
        for side in ("query", "title")
        for which in ("trained", "untrained")
        if not (which == "untrained" and claim.startswith("cosine"))
    }
    by_key = {(c.claim, c.side, c.model): c.finding for c in claims}
    least = by_key["stop_words_of_least_effect", "query", "trained"]
    assert least.number == 6  # one of each text
    assert least.chance == pytest.approx(3 / 5, abs=0.02)
    if name == "dssm":  # nothing is left to chance
        assert measure_claims(model, pairs, contexts) == claims
