"""Targets of documents: computed, written, read again."""

import numpy as np
import pytest

from keras_lstm_dssm.data import Document, DocumentFolder
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.training.document_targets import (
    DocumentTargets,
    KeyWords,
    Target,
)
from keras_lstm_dssm.training.salience import (
    agreement,
    salience_teacher,
    salient_sentences,
)

DOCUMENTS = [
    Document("d1", "", ["Cats sleep.", "Dogs bark.", "Trees grow.", "Go on."],
             ["Some trees grow tall."]),
    Document("d2", "", ["One.", "Birds fly south."], ["Birds fly."]),
    Document("d3", "", ["No.", "Nothing."], []),
    Document("d4", "", ["Cats bark."], ["Unrelated words."]),
]  # fmt: skip


@pytest.fixture
def targets() -> DocumentTargets:
    teacher = salience_teacher("bm25", DOCUMENTS)
    return DocumentTargets.from_teacher(DOCUMENTS, teacher, KeyWords(DOCUMENTS))


def test_targets_of_documents(targets):
    assert targets.of(DOCUMENTS[0]) == Target(4, [2], ["trees", "grow", "tall"])
    assert targets.of(DOCUMENTS[0]).marks().tolist() == [
        False, False, True, False
    ]  # fmt: skip
    assert targets.of(DOCUMENTS[1]) == Target(2, [1], ["birds", "fly"])
    assert targets.of(DOCUMENTS[2]) == Target(2, [0], [])
    assert targets.of(DOCUMENTS[3]) == Target(1, [0], ["unrelated", "words"])
    assert 0 < targets.counts.theta < 1
    assert targets.counts.none == targets.counts.no_summary == 1


def test_thresholds():
    key_words = KeyWords(DOCUMENTS)
    teacher = salience_teacher("bm25", DOCUMENTS)
    given = DocumentTargets.from_teacher(DOCUMENTS, teacher, key_words, 0.99)
    assert given.counts.theta == 0.99 and given.counts.none == 3
    lead = DocumentTargets.from_teacher(
        DOCUMENTS, salience_teacher("lead", DOCUMENTS), key_words
    )
    assert [one.salient for one in lead.targets.values()] == [[0]] * 4
    assert lead.counts.theta == 0 and lead.counts.full == 4
    with pytest.raises(InputError, match="no training document with a summary"):
        DocumentTargets.from_teacher(DOCUMENTS[2:3], teacher, key_words)


def test_a_document_that_has_changed(targets):
    longer = DOCUMENTS[1]._replace(sentences=["a"] * 3)
    with pytest.raises(InputError, match="'d2': found 3 sentences, expected 2"):
        targets.of(longer)
    with pytest.raises(InputError, match="'d9': found 2 .* no such document"):
        targets.of(DOCUMENTS[1]._replace(id="d9"))


def test_what_is_written_is_read(targets, tmp_path):
    path = tmp_path / "targets.json.gz"
    targets.write(path)
    again = DocumentTargets.from_file(path)
    assert again.targets == targets.targets and again.counts == targets.counts
    for damaged in (b"", path.read_bytes()[:40], b"{}"):
        path.write_bytes(damaged)
        with pytest.raises(
            InputError, match="targets.json.gz: found no targets of documents"
        ):
            DocumentTargets.from_file(path)


def test_real_targets(shared_data):
    """The gold summaries of bbc are sentences of the articles."""
    folder = DocumentFolder(shared_data / "bbc")
    train, dev = list(folder.of("train")), list(folder.of("dev"))
    teacher = salience_teacher("bm25", train)
    key_words = KeyWords(train)
    targets = DocumentTargets.from_teacher(train, teacher, key_words)
    assert len(targets.targets) == 1250
    assert targets.counts.theta == 0.999995
    assert targets.counts.none == targets.counts.no_summary == 0
    similarities = list(teacher.similarities(dev))
    salient = [salient_sentences(one, 0.999995) for one in similarities]
    in_summary = [
        np.array([text in one.summary for text in one.sentences]) for one in dev
    ]
    for document, marks, is_gold in zip(dev, salient, in_summary, strict=True):
        assert is_gold[marks].all() or not is_gold.any(), document.id
    lead = list(salience_teacher("lead", train).similarities(dev))
    of_lead = agreement(salient, lead)
    assert of_lead.base_rate < 0.13 and of_lead.precision > 0.5
