"""The similarities of sentences to a summary, by every teacher."""

import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.data import Document
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.bm25 import BM25System, alphanumeric
from keras_lstm_dssm.training.salience import salience_teacher

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
        letters = "#abcdefghijklmnopqrstuvwxyz0123456789"
        vector = np.zeros(37**3)
        for word in text.lower().split():
            codes = [letters.index(c) for c in f"#{word}#"]
            for a, b, c in zip(codes, codes[1:], codes[2:], strict=False):
                vector[(a * 37 + b) * 37 + c] += 1
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
    towers = dssm.TwoTower.from_preset("best")
    with pytest.raises(InputError, match="that has not been adapted"):
        salience_teacher(towers, DOCUMENTS)
