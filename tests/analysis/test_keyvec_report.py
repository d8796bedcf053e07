"""What a KeyVec keeps of documents: explained, on a page and in files."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from keras_lstm_dssm.analysis import (
    ExplainedDocument,
    explain_documents,
    frame,
)
from keras_lstm_dssm.analysis.keyvec_report import (
    ReportDocuments,
    report_on_documents,
)
from keras_lstm_dssm.analysis.report import Report
from keras_lstm_dssm.data import Document
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import write_csv
from keras_lstm_dssm.models import KeyVec
from keras_lstm_dssm.plain_files import read_csv
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.settings.programs import ReportSettings
from keras_lstm_dssm.training import DocumentTargets
from keras_lstm_dssm.training.document_targets import Target
from keras_lstm_dssm.training.salience import SalienceCounts
from tests.analysis.html_page import HtmlPage, check_self_contained
from tests.models.small_keyvec import VOCABULARY, small_keyvec

DOCUMENTS = [
    Document("d1", "<b>Bolts</b>", ["The hex bolt", "Glue <i> & co", "Drill"],
             ["Hex bolt.", "A drill."], "tools"),
    Document("d2", "", ["Wood glue", "The lamp of wood"], ["Glue."], "wood"),
    Document("d3", "Lamps", ["The lamp", "Lamp of glue"], [], "wood"),
    Document("d4", "Drills", ["Drill of the lamp", "of", "Hex"], ["Hex."]),
]  # fmt: skip
TARGETS = DocumentTargets(
    {
        "d1": Target(3, [0, 2], ["bolt", "gizmo", "drill"]),
        "d2": Target(2, [0], ["glue"]),
        "d3": Target(2, [0], []),
        "d4": Target(3, [2], ["hex"]),
    },
    SalienceCounts(0.5),
)
SENTENCES = [document.sentences for document in DOCUMENTS]
GIVEN = ReportDocuments("test", DOCUMENTS, TARGETS, "bm25", {})
HISTORY = [
    {"epoch": e, "updates": e, "loss": 3 / e, "read_loss": 1 / e,
     "key_word_loss": 2 / e}
    for e in (1, 2)
]  # fmt: skip
SETTINGS = ReportSettings(map="pca")


@pytest.fixture(scope="module")
def short() -> KeyVec:
    """Makes a model that reads two sentences; document d1 has three."""
    return small_keyvec(max_sentences=2)


@pytest.fixture(scope="module")
def model() -> KeyVec:
    return small_keyvec()


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Makes the folder of a run that has a history, and of its pictures."""
    folder = tmp_path_factory.mktemp("keyvec")
    write_csv(folder / "history.csv", HISTORY)
    return folder


@pytest.fixture(scope="module")
def report(model, folder) -> Report:
    return report_on_documents(
        model, GIVEN, RunFolder(folder), SETTINGS, folder / "pictures"
    )


@pytest.fixture(scope="module")
def explained(model, report) -> list[ExplainedDocument]:
    """Explains the documents that the report has chosen, in its order."""
    ids = [document.id for document in DOCUMENTS]
    rows = [ids.index(one["id"]) for one in report.values["documents"]]
    return explain_documents(model, DOCUMENTS, TARGETS, rows)


def test_sentences_words_and_neighbours_are_those_of_the_model(short):
    found = explain_documents(short, DOCUMENTS, TARGETS, [3, 0], 4, 2)
    assert [one.id for one in found] == ["d4", "d1"]
    bolts = found[1]
    assert (bolts.title, bolts.label) == ("<b>Bolts</b>", "tools")
    assert bolts.summary == ["Hex bolt.", "A drill."]
    (p,) = short.probabilities([SENTENCES[0]])
    rows = frame(bolts.sentences)
    assert list(rows) == ["text", "probability", "salient"]
    assert rows.text.tolist() == SENTENCES[0][:2]
    assert rows.probability.tolist() == pytest.approx(p)
    assert rows.salient.tolist() == [True, False]
    words = short.key_words(SENTENCES[0], len(VOCABULARY))
    predicted = [(one.word, one.probability) for one in bolts.predicted]
    assert dict(predicted) == pytest.approx(dict(words[:4]), rel=1e-5)
    assert [word for word, _ in predicted] == [word for word, _ in words[:4]]
    is_key_word = [one.word for one in bolts.predicted if one.is_key_word]
    assert is_key_word == [w for w, _ in words[:4] if w in ("bolt", "drill")]
    assert [w.word for w in bolts.key_words] == ["bolt", "gizmo", "drill"]
    for one in bolts.key_words:
        if one.word == "gizmo":  # not in the vocabulary
            assert one.rank is one.probability is None
        else:
            word, probability = words[one.rank - 1]
            assert one.word == word
            assert one.probability == pytest.approx(probability, rel=1e-5)
    vectors = short.encode(SENTENCES)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = unit @ unit[0]
    order = [row for row in np.argsort(-cosines) if row != 0][:2]
    nearest = {one.id: one.cosine for one in bolts.nearest}
    assert list(nearest) == [DOCUMENTS[row].id for row in order]
    assert [*nearest.values()] == pytest.approx(cosines[order], abs=1e-6)


def test_nothing_to_compare_with(short):
    lamps = explain_documents(short, DOCUMENTS, TARGETS, [2])[0]
    assert [one.salient for one in lamps.sentences] == [None, None]
    assert lamps.key_words == [] and len(lamps.nearest) == 3
    everything = explain_documents(short, DOCUMENTS)
    assert [one.id for one in everything] == ["d1", "d2", "d3", "d4"]
    assert everything[1].title == "Wood glue"  # its first sentence
    assert everything[0].key_words == []
    (alone,) = explain_documents(short, DOCUMENTS[:1])
    assert alone.nearest == []
    with pytest.raises(InputError, match="found no documents to explain"):
        explain_documents(short, [])


def test_values(model, report, explained, tmp_path):
    # d3 has no summary, so that its key sentences are not compared.
    assert sorted(one.id for one in explained) == ["d1", "d2", "d4"]
    assert report.values["documents"] == [asdict(one) for one in explained]
    marks = [TARGETS.of(DOCUMENTS[row]).marks() for row in (0, 1, 3)]
    by_model, by_position = report.values["key_sentences"].values()
    base_rate = np.mean([each.mean() for each in marks])
    assert by_model["base_rate"] == pytest.approx(base_rate)
    probabilities = model.probabilities([SENTENCES[row] for row in (0, 1, 3)])
    first = [
        of[np.argsort(-p, kind="stable")[: of.sum()]].mean()
        for of, p in zip(marks, probabilities, strict=True)
    ]
    assert by_model["precision"] == pytest.approx(np.mean(first))
    assert by_position["precision"] == pytest.approx((0.5 + 1 + 0) / 3)
    on_map = [(row["id"], row["class"]) for row in report.values["map"]]
    assert on_map == [(one.id, one.label) for one in DOCUMENTS]
    fewer = SETTINGS.replace(examples=1, map_titles=3)
    some = report_on_documents(
        model, GIVEN, RunFolder(tmp_path), fewer, tmp_path
    ).values
    assert len(some["documents"]) == 1 and len(some["map"]) == 3


def test_page(report, explained, folder):
    path = folder / "r.html"
    report.write(path)
    page = HtmlPage(path.read_text())
    assert len(check_self_contained(page, path.read_text())) == 2
    names = sorted(one.name for one in (folder / "pictures").iterdir())
    assert names == ["document_map.png", "loss.png"]
    titles = [one.title for one in explained]
    assert page.of("h2") == [
        "Training, epoch by epoch", "Key sentences of all documents",
        *titles, "A map of documents",
    ]  # fmt: skip
    assert "<b>Bolts</b>" in titles  # a text, not a tag
    shaded = [
        names for tag, names in page.tags if names.get("class") == "shaded"
    ]
    sentences = [(each, one) for each in explained for one in each.sentences]
    assert page.of("span") == [one.text for _, one in sentences]
    assert "Glue <i> & co" in page.of("span")
    cells = page.of("td")
    for (each, one), attributes in zip(sentences, shaded, strict=True):
        largest = max(s.probability for s in each.sentences)
        title, style = (attributes[key] or "" for key in ("title", "style"))
        opacity = float(style.split("/ ")[1].rstrip(")"))
        expected = 0.5 * one.probability / largest
        assert opacity == pytest.approx(expected, abs=1e-3)
        assert f"p = {one.probability:.3f}" in title
        assert ("in S*" in title) == one.salient
        assert f"{one.probability:.3f}" in cells  # beside the sentence
    assert page.of("strong").count("S*") == 2 + 1 + 1
    for document in explained:
        for near in document.nearest:
            assert f"{near.cosine:.4f}" in page.of("th")
            assert near.title in cells
        for word in document.predicted:
            assert word.word in page.of("strong" if word.is_key_word else "td")
            assert f"{word.probability:.4f}" in cells
    assert "gizmo" in cells


def as_text(records: list[dict[str, Any]]) -> list[dict[str, str]]:
    return [
        {k: "" if v is None else str(v) for k, v in record.items()}
        for record in records
    ]


def test_files_have_the_metrics_of_the_page(report, tmp_path):
    for file, records in report.csv.items():
        write_csv(tmp_path / file, records)
    rows = {path.stem: read_csv(path) for path in tmp_path.iterdir()}
    found: dict[str, Any] = json.loads(json.dumps(report.values))
    for name in ("sentences", "predicted", "key_words", "nearest"):
        file = "predicted_words" if name == "predicted" else name
        assert rows.pop(file) == as_text(
            [
                {"document": one["id"], **record}
                for one in found["documents"]
                for record in one[name]
            ]
        )
    assert rows == {"map": as_text(found["map"])}


def test_documents_without_summaries(model, tmp_path):
    plain = [one._replace(summary=[], label="") for one in DOCUMENTS]
    report = report_on_documents(
        model, GIVEN._replace(documents=plain), RunFolder(tmp_path),
        SETTINGS.replace(examples=2), tmp_path,
    )  # fmt: skip
    agreements = {"model": None, "position": None}
    assert report.values["key_sentences"] == agreements
    report.write(tmp_path / "r.html")
    page = HtmlPage((tmp_path / "r.html").read_text())
    assert "Key sentences of all documents" not in page.of("h2")
    assert "S*" not in page.of("strong")
    assert len(page.of("h2")) == 3
