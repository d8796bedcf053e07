"""The paper's claims as numbers, beside chance and beside an untrained copy."""

import numpy as np
import pytest

from keras_lstm_dssm import TwoTower
from keras_lstm_dssm.analysis.claims import (
    CLAIM_LABELS,
    WordAssignments,
    assign_words,
    coherence,
    compare_with_draws,
    context_vectors,
    is_stop_word,
    measure_claims,
    remaining_cosine,
    stop_word_share,
    untrained_copy,
)
from keras_lstm_dssm.analysis.words import topics
from keras_lstm_dssm.errors import InputError
from tests.conftest import TOPICS
from tests.encoders import small
from tests.encoders.small import small_encoder

ON, OFF = True, False


class Letters:
    """Counts letters, so that what a word adds to a vector is known."""

    def encode(self, texts: list[str]) -> np.ndarray:
        counts = np.array([[t.count(c) for c in "abcd"] for t in texts], float)
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)


def test_p_counts_draws_as_far_off():
    draws = np.array([0.0, 1.0, 2.0, 3.0])
    assert compare_with_draws(draws, 3.0, 7) == (3.0, 1.5, 2 * 2 / 5, 7)
    assert compare_with_draws(draws, 9.0, 7).p == 2 * 1 / 5
    assert compare_with_draws(draws, -1.0, 7).p == 2 * 1 / 5
    assert compare_with_draws(np.ones(4), 1.0, 7).p == 1


def test_stop_words():
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


def test_remaining_cosine():
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


def two_topics(mixed: bool) -> WordAssignments:
    """Assigns the words of 30 texts, on two topics, to two cells."""
    random = np.random.default_rng(1)
    topic = np.arange(30) % 2
    cell = random.permutation(topic) if mixed else topic
    words = np.array(
        [f"{'xz'[t]}{random.integers(6)}" for t in topic for _ in "ab"], object
    )
    text = np.repeat(np.arange(30), 2)
    return WordAssignments(cell[:, None], text, np.zeros(60, int), words, 4)


def test_coherence():
    word_vectors = {
        f"{kind}{n}": vector
        for kind, vector in zip("xz", np.eye(2, dtype="float32"), strict=True)
        for n in range(6)
    }
    encoder = small_encoder("rnn")
    found = coherence(encoder, two_topics(mixed=False), word_vectors)
    assert found.value == pytest.approx(1)
    assert (found.chance < 0.7, found.p) == (True, 2 / 500)
    assert coherence(encoder, two_topics(mixed=True), word_vectors).p > 0.05
    # Every pair of one topic shares "#x" or "#z" only, no trigram.
    apart = coherence(
        encoder, two_topics(mixed=False), word_vectors, same_trigrams=False
    )
    assert apart.value == pytest.approx(1)


def test_texts_of_one_word_assign_nothing():
    encoder = small_encoder("rnn")
    assignments = assign_words(encoder, ["pizza", "glue"], 2, 0.2)
    assert (assignments.active.shape, len(assignments.word)) == ((2, 2), 0)
    word_vectors = {"glue": np.ones(1, "float32")}
    assert coherence(encoder, assignments, word_vectors).number == 0


def test_pairs_that_share_a_trigram_can_be_left_out():
    assignments = WordAssignments(
        np.array([[0], [0]]), np.array([0, 1]), np.array([0, 0]),
        np.array(["hotel", "hotels"], object), 4,
    )  # fmt: skip
    word_vectors = dict.fromkeys(("hotel", "hotels"), np.ones(1, "float32"))
    encoder = small_encoder("rnn")
    assert coherence(encoder, assignments, word_vectors).value == 1
    assert (
        coherence(encoder, assignments, word_vectors, same_trigrams=False).value
        == 0
    )


def test_likeness_is_the_company_of_words():
    trades = [("drill", "bit", "kit"), ("glue", "wood", "oz")]
    contexts = [(x, y) for t in trades for x in t for y in t if x != y] * 2
    word_vectors = context_vectors(contexts)
    drill, bit, glue = (word_vectors[w] for w in ("drill", "bit", "glue"))
    assert drill @ bit > drill @ glue
    more = context_vectors([*contexts, ("once",)])
    assert more.keys() == word_vectors.keys()
    with pytest.raises(InputError, match="more of 2 contexts: give data"):
        context_vectors(contexts[:2])


@pytest.mark.parametrize("name", ["lstm_full_forget", "bilstm"])
def test_assignments_are_those_of_the_topics(name):
    encoder = small_encoder(name)
    texts = ["fried chicken recipes", "pizza", "sinus infections"]
    assignments = assign_words(encoder, texts, 2, 0.2)
    assert assignments.active.shape == (3, 4 if name == "bilstm" else 2)
    found = sorted(
        zip(
            assignments.active[assignments.text, assignments.slot],
            assignments.word, assignments.text, strict=True,
        )
    )  # fmt: skip
    assert found == sorted(
        (cell, *word)
        for cell, taken in topics(encoder, texts, 2, 0.2).items()
        for word in taken
    )


@pytest.mark.parametrize("name", ["bilstm", "dssm"])
def test_all_claims(name, monkeypatch):
    # The same weights whichever tests run before: others have no keyword.
    monkeypatch.setattr(small, "RANDOM", np.random.default_rng(2))
    encoder = small_encoder(name)
    model = TwoTower(encoder, encoder)
    pairs = [(f"a {query} of the", title) for query, title in TOPICS.values()]
    contexts = [" ".join(pair) for pair in pairs] * 3
    claims = measure_claims(model, pairs, contexts, cells=4, change=0.6)
    expected = list(CLAIM_LABELS) if name == "bilstm" else [
        "stop_words_of_least_effect", "cosine_of_strong_half",
    ]  # fmt: skip
    found = {(c.claim, c.side, c.model) for c in claims}
    assert found == {
        (claim, side, which)
        for claim in expected
        for side in ("query", "document")
        for which in ("trained", "untrained")
        if not (which == "untrained" and claim.startswith("cosine"))
    }
    by_key = {(c.claim, c.side, c.model): c.comparison for c in claims}
    least = by_key["stop_words_of_least_effect", "query", "trained"]
    assert least.number == 6  # one of each text
    assert least.chance == pytest.approx(3 / 5, abs=0.02)
    if name == "dssm":  # nothing is left to chance
        assert measure_claims(model, pairs, contexts) == claims


def test_the_untrained_copy_keeps_what_adapt_counted():
    titles = [title for _, title in TOPICS.values()]
    query, document = small_encoder("combined"), small_encoder("combined")
    model = TwoTower(query, document)
    model.adapt(titles)
    document.long.assign(3.0)
    document.embedding.trainable = False  # frozen, and yet not fixed
    copy = untrained_copy(model)
    assert copy.document_encoder is not document
    for tower, fresh in zip(model.towers, copy.towers, strict=True):
        sketch, of_copy = tower.word_sketch, fresh.word_sketch
        weights = sketch.word_weight.numpy()
        assert len(np.unique(weights)) > 2  # the IDF of words
        np.testing.assert_array_equal(of_copy.word_weight, weights)
        for table in ("embedding", "bag_embedding"):
            trained = getattr(tower, table).table.numpy()
            random = getattr(fresh, table).table.numpy()
            assert np.abs(random).max() <= 0.05 < np.abs(trained).max()
    assert float(copy.document_encoder.long) == 3
    tied = untrained_copy(TwoTower(query, query))
    assert tied.query_encoder is tied.document_encoder is not query
