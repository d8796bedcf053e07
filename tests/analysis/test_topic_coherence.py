"""The similarity of a cell's words: high for topics, chance without them."""

import numpy as np
import pytest

from keras_lstm_dssm.analysis.claims import (
    WordAssignments,
    WordVectors,
    assign_words,
    coherence,
    context_vectors,
)
from keras_lstm_dssm.analysis.words import topics
from keras_lstm_dssm.errors import InputError
from tests.encoders.small import small_encoder


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


def test_coherence() -> None:
    words = {f"{kind}{n}": i * 6 + n for i, kind in enumerate("xz")
             for n in range(6)}  # fmt: skip
    word_vectors = WordVectors(
        words, np.repeat(np.eye(2, dtype="float32"), 6, axis=0)
    )
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


def test_texts_of_one_word_assign_nothing() -> None:
    encoder = small_encoder("rnn")
    assignments = assign_words(encoder, ["pizza", "glue"], 2, 0.2)
    assert (assignments.active.shape, len(assignments.word)) == ((2, 2), 0)
    word_vectors = WordVectors({"glue": 0}, np.ones((1, 1), "float32"))
    assert coherence(encoder, assignments, word_vectors).number == 0


def test_pairs_that_share_a_trigram_can_be_left_out() -> None:
    assignments = WordAssignments(
        np.array([[0], [0]]), np.array([0, 1]), np.array([0, 0]),
        np.array(["hotel", "hotels"], object), 4,
    )  # fmt: skip
    word_vectors = WordVectors(
        {"hotel": 0, "hotels": 1}, np.ones((2, 1), "float32")
    )
    encoder = small_encoder("rnn")
    assert coherence(encoder, assignments, word_vectors).value == 1
    assert (
        coherence(encoder, assignments, word_vectors, same_trigrams=False).value
        == 0
    )


def test_likeness_is_the_company_of_words() -> None:
    trades = [("drill", "bit", "kit"), ("glue", "wood", "oz")]
    contexts = [(x, y) for t in trades for x in t for y in t if x != y] * 2
    word_vectors = context_vectors(contexts)
    near = (
        word_vectors.vectors @ word_vectors.vectors[word_vectors.rows["drill"]]
    )
    assert near[word_vectors.rows["bit"]] > near[word_vectors.rows["glue"]]
    assert (
        context_vectors([*contexts, ("once",)]).rows.keys()
        == word_vectors.rows.keys()
    )
    with pytest.raises(InputError, match="2 contexts: found no two words"):
        context_vectors(contexts[:2])


@pytest.mark.parametrize("name", ["lstm_full_forget", "bilstm"])
def test_assignments_are_those_of_the_topics(name) -> None:
    encoder = small_encoder(name)
    texts = ["fried chicken recipes", "pizza", "sinus infections"]
    assignments = assign_words(encoder, texts, 2, 0.2)
    assert assignments.active.shape == (3, 4 if name == "bilstm" else 2)
    found = sorted(
        zip(
            assignments.active[assignments.text, assignments.slot],
            assignments.word,
            assignments.text,
            strict=True,
        )
    )
    assert found == sorted(
        (cell, *word)
        for cell, taken in topics(encoder, texts, 2, 0.2).items()
        for word in taken
    )
