"""Key sentences, key words and neighbours of documents."""

import numpy as np
import pytest

from keras_lstm_dssm.analysis import explain_documents, frame
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.models import KeyVec
from tests.analysis.small_report import DOCUMENTS, SENTENCES, TARGETS
from tests.models.small_keyvec import VOCABULARY, small_keyvec


@pytest.fixture(scope="module")
def model() -> KeyVec:
    """Makes a model that reads two sentences; document d1 has three."""
    return small_keyvec(max_sentences=2)


def test_sentences_words_and_neighbours_are_those_of_the_model(model):
    found = explain_documents(model, DOCUMENTS, TARGETS, [3, 0], 4, 2)
    assert [one.id for one in found] == ["d4", "d1"]
    bolts = found[1]
    assert (bolts.title, bolts.label) == ("<b>Bolts</b>", "tools")
    assert bolts.summary == ["Hex bolt.", "A drill."]
    (p,) = model.probabilities([SENTENCES[0]])
    assert [one.text for one in bolts.sentences] == SENTENCES[0][:2]
    assert [one.probability for one in bolts.sentences] == pytest.approx(p)
    assert [one.salient for one in bolts.sentences] == [True, False]
    words = model.key_words(SENTENCES[0], len(VOCABULARY))
    assert [
        (one.word, pytest.approx(one.probability, rel=1e-5))
        for one in bolts.predicted
    ] == words[:4]
    is_key_word = [one.word for one in bolts.predicted if one.is_key_word]
    assert is_key_word == [w for w, _ in words[:4] if w in ("bolt", "drill")]
    ranked = dict(words)
    for one in bolts.key_words:
        if one.word == "gizmo":  # not in the vocabulary
            assert one.rank is one.probability is None
        else:
            assert words[one.rank - 1][0] == one.word
            assert one.probability == pytest.approx(ranked[one.word], rel=1e-5)
    assert [w.word for w in bolts.key_words] == ["bolt", "gizmo", "drill"]
    vectors = model.encode(SENTENCES)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = unit @ unit[0]
    order = [row for row in np.argsort(-cosines) if row != 0]
    assert [one.id for one in bolts.nearest] == [
        DOCUMENTS[row].id for row in order[:2]
    ]
    assert [one.cosine for one in bolts.nearest] == pytest.approx(
        cosines[order[:2]], abs=1e-6
    )


def test_nothing_to_compare_with(model):
    lamps = explain_documents(model, DOCUMENTS, TARGETS, [2])[0]
    assert [one.salient for one in lamps.sentences] == [None, None]
    assert lamps.key_words == [] and len(lamps.nearest) == 3
    everything = explain_documents(model, DOCUMENTS)
    assert [one.id for one in everything] == ["d1", "d2", "d3", "d4"]
    assert everything[1].title == "Wood glue"  # its first sentence
    assert everything[0].key_words == []
    (alone,) = explain_documents(model, DOCUMENTS[:1])
    assert alone.nearest == []
    with pytest.raises(InputError, match="found no documents to explain"):
        explain_documents(model, [])


def test_records_have_their_fields_as_columns(model):
    pytest.importorskip("pandas")
    (bolts,) = explain_documents(model, DOCUMENTS, TARGETS, [0])
    rows = frame(bolts.sentences)
    assert list(rows) == ["text", "probability", "salient"]
    assert rows.text.tolist() == SENTENCES[0][:2]
