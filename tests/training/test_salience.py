"""Salient sentences, and their similarity to a summary by every teacher."""

import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.data import Document
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.bm25 import BM25System, alphanumeric
from keras_lstm_dssm.training.salience import (
    SalienceCounts,
    agreement,
    largest_salient,
    salience_teacher,
    salience_threshold,
    salient_sentences,
)
from tests import reference

NO_SUMMARY = np.full(9, np.nan)


@pytest.mark.parametrize(("sentences", "largest"), [
    (1, 1), (3, 1), (7, 1), (8, 2), (39, 9), (40, 10), (5000, 10),
])  # fmt: skip
def test_the_largest_number(sentences, largest):
    assert largest_salient(sentences) == largest


@pytest.mark.parametrize(("similarity", "theta", "positions"), [
    # K is 2 for 8 sentences.
    ([0.1, 0.9, 0.2, 0.8, 0.7, 0.1, 0.1, 0.1], 0.75, [1, 3]),
    ([0.1, 0.9, 0.2, 0.8, 0.7, 0.1, 0.1, 0.1], 0.5, [1, 3]),
    ([0.1, 0.9, 0.2, 0.8, 0.7, 0.1, 0.1, 0.1], 0.85, [1]),
    # The threshold itself is not above the threshold.
    ([0.1, 0.9, 0.2, 0.8, 0.7, 0.1, 0.1, 0.1], 0.8, [1]),
    # None above: the most similar one, the first of equal ones.
    ([0.1, 0.3, 0.2, 0.3], 0.5, [1]),
    ([0.0, 0.0, 0.0, 0.0], 0.5, [0]),
    # Of equal ones the earlier are chosen.
    ([0.1, 0.6, 0.6, 0.9, 0.6, 0.6, 0.1, 0.1], 0.5, [1, 3]),
    ([0.2], 0.5, [0]),
    ([-0.5, -0.2], -np.inf, [1]),
    # Without a summary: the first K.
    (NO_SUMMARY, 0.5, [0, 1]),
])  # fmt: skip
def test_hand_made_sets(similarity, theta, positions):
    salient = salient_sentences(np.array(similarity), theta)
    assert salient.dtype == bool and salient.shape == (len(similarity),)
    assert np.flatnonzero(salient).tolist() == positions


def test_half_of_the_documents_have_half_of_k():
    rng = np.random.default_rng(0)
    similarities = [
        np.round(rng.random(size), 5) for size in rng.integers(1, 80, 401)
    ]
    theta = salience_threshold([*similarities, NO_SUMMARY])
    halves = [-(-largest_salient(len(one)) // 2) for one in similarities]

    def share(threshold: float) -> float:
        above = [(one > threshold).sum() for one in similarities]
        return np.mean(np.array(above) >= halves)

    assert 0.5 <= share(theta) < 0.505 and share(theta + 2e-5) < 0.5
    # K is 10: the median of the fifth largest; 1 document has it.
    ranked = np.linspace(0.99, 0.6, 40)
    assert salience_threshold([ranked]) == pytest.approx(ranked[4] - 5e-6)
    assert salient_sentences(ranked, salience_threshold([ranked])).sum() == 5


def test_sentences_of_the_summary_itself_are_above_the_threshold():
    extractive = [np.array([1.0, 1, 1, 0.3, 0.2, 0.1, 0, 0])] * 3
    theta = salience_threshold(extractive)
    assert theta == 0.999995
    assert np.flatnonzero(salient_sentences(extractive[0], theta)).tolist() == [
        0, 1
    ]  # fmt: skip


def test_counts():
    similarities = [
        np.array([0.9, 0.8, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]),  # both of 2
        np.array([0.9, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]),  # one of 2
        np.array([0.4, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]),  # none
        np.array([0.4, 0.3]),  # none, which is 1 of 1
        NO_SUMMARY,
    ]
    counts = SalienceCounts(0.5)
    for similarity in similarities:
        counts.add(similarity, salient_sentences(similarity, counts.theta))
    assert counts == SalienceCounts(
        0.5, documents=5, sentences=35, salient=7, none=2, full=3, no_summary=1
    )
    assert counts.describe() == (
        "salient: 20.0% of 35 sentences, theta 0.5; 40.0% of 5 documents have"
        " no sentence above theta and keep the most similar sentence, 60.0%"
        " have the largest number of salient sentences; 1 have no summary: the"
        " first sentences are salient"
    )


def test_agreement_of_two_teachers():
    salient = [
        np.array([True, False, True, False]),
        np.array([False, False, True]),
    ]
    scores = [np.array([0.9, 0.5, 0.1, 0.1]), np.array([0.2, 0.2, 0.2])]
    precision, average_precision, base_rate = agreement(salient, scores)
    # Ranks of the salient ones: 1 and 3; 3, since the earlier come first.
    assert precision == (1 / 2 + 0) / 2
    assert average_precision == pytest.approx(((1 + 2 / 3) / 2 + 1 / 3) / 2)
    assert base_rate == pytest.approx((1 / 2 + 1 / 3) / 2)
    perfect = agreement(salient, [mark.astype(float) for mark in salient])
    assert perfect[:2] == (1, 1)


DOCUMENTS = [
    Document("d1", "", ["A hex bolt.", "Wood glue", "Hex bolt zinc 3 in"],
             ["hex bolt zinc", "no words of it"]),
    Document("d2", "", ["Lamp."], []),
    Document("d3", "", ["!", "Desk lamp led", "Glue", "desk lamp LED"],
             ["Desk lamp led", "?"]),
]  # fmt: skip


@pytest.mark.parametrize("name", ["bm25", "trigrams", "lead", "towers"])
def test_what_holds_for_all(name, trained_run):
    teacher = salience_teacher(
        trained_run if name == "towers" else name, DOCUMENTS
    )
    first, second, third = teacher.similarities(iter(DOCUMENTS))
    assert first.shape == (3,) and third.shape == (4,)
    assert first.dtype == np.float64
    np.testing.assert_array_equal(second, [np.nan])
    np.testing.assert_array_equal(third, np.round(third, 5))
    # Together with other documents or alone.
    np.testing.assert_array_equal(
        third, next(teacher.similarities([DOCUMENTS[2]]))
    )
    if name != "lead":
        # Equal sentences have equal similarities, and the largest.
        assert third[1] == third[3] == third.max() == 1
        assert name == "towers" or first[1] < first[0] < first[2]
    assert list(teacher.similarities([])) == []


def test_lead():
    teacher = salience_teacher("lead", DOCUMENTS)
    similarity = next(teacher.similarities(DOCUMENTS[2:]))
    np.testing.assert_allclose(similarity, [1, 0.5, 0.33333, 0.25])
    assert teacher.theta == 0


def test_bm25_is_that_of_the_baseline():
    """Where the sentences of all documents are those that are searched."""
    texts = tuple(text for one in DOCUMENTS for text in one.sentences)
    system = BM25System(tokenizer=alphanumeric)
    query = "desk lamp led"
    (scores, _), (to_itself, _) = (
        *system.scores([query], texts),
        *system.scores([query], texts),
    )
    teacher = salience_teacher("bm25", DOCUMENTS)
    similarity = next(teacher.similarities(DOCUMENTS[2:]))
    expected = scores[-4:] / to_itself[-1]  # the last sentence is the query
    np.testing.assert_allclose(similarity, expected, atol=6e-6)
    assert similarity.tolist() == [0, 1, 0, 1]
    # The largest over the sentences of the summary, "hex bolt zinc" here.
    ((scores, _),) = system.scores(["hex bolt zinc"], texts)
    found = next(teacher.compare(DOCUMENTS[:1]))
    np.testing.assert_allclose(
        found / found[2], scores[:3] / scores[2], rtol=1e-5
    )


def test_trigrams_against_counts():
    def counts(text: str) -> np.ndarray:
        vector = sum(map(reference.counts, text.split()))
        return vector / np.linalg.norm(vector)

    document = Document(
        "d", "", ["hex bolts", "wood glue glue"], ["bolt", "glue hex"]
    )
    (found,) = salience_teacher("trigrams", []).compare([document])
    expected = [
        max(counts(one) @ counts(other) for other in document.summary)
        for one in document.sentences
    ]
    np.testing.assert_allclose(found, expected)


def test_towers(trained_run):
    towers = dssm.load_run(trained_run)
    document = DOCUMENTS[0]
    sentences, summary = (
        towers.query_encoder.encode(texts)
        for texts in (document.sentences, document.summary)
    )
    expected = (sentences @ summary.T).max(axis=1)
    for teacher in (
        salience_teacher(towers, DOCUMENTS),
        salience_teacher(str(trained_run), DOCUMENTS),
    ):
        (found,) = teacher.similarities([document])
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_wrong_teacher(tmp_path):
    with pytest.raises(InputError, match="no model here"):
        salience_teacher(tmp_path, DOCUMENTS)
    message = "'bm52': found no such folder, expected one of bm25, trigrams, l"
    with pytest.raises(InputError, match=message):
        salience_teacher("bm52", DOCUMENTS)
    towers = dssm.build_model("best")
    with pytest.raises(InputError, match="that has not been adapted"):
        salience_teacher(towers, DOCUMENTS)
