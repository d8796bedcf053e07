"""The report of a KeyVec: its page and its files have the same metrics."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from keras_lstm_dssm.analysis import ExplainedDocument, explain_documents
from keras_lstm_dssm.analysis.keyvec_report import (
    ReportDocuments,
    report_on_documents,
)
from keras_lstm_dssm.analysis.report import Report
from keras_lstm_dssm.files import read_csv, write_csv
from keras_lstm_dssm.models import KeyVec
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.settings.reports import ReportSettings
from tests.analysis.html_page import HtmlPage, check_self_contained
from tests.analysis.small_report import DOCUMENTS, SENTENCES, TARGETS
from tests.models.small_keyvec import small_keyvec

GIVEN = ReportDocuments("test", DOCUMENTS, TARGETS, "bm25", {})
HISTORY = [
    {"epoch": e, "updates": e, "loss": 3 / e, "read_loss": 1 / e,
     "key_word_loss": 2 / e}
    for e in (1, 2)
]  # fmt: skip
SETTINGS = ReportSettings(map="pca")


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


def test_values(model, report, explained, tmp_path):
    # d3 has no summary, so that its key sentences are not compared.
    assert sorted(one.id for one in explained) == ["d1", "d2", "d4"]
    assert report.values["documents"] == [asdict(one) for one in explained]
    marks = [TARGETS.of(DOCUMENTS[row]).marks() for row in (0, 1, 3)]
    by_model, by_position = report.values["key_sentences"].values()
    assert by_model["base_rate"] == pytest.approx(
        np.mean([each.mean() for each in marks])
    )
    first = [
        marks[n][np.argsort(-p, kind="stable")[: marks[n].sum()]].mean()
        for n, p in enumerate(
            model.probabilities([SENTENCES[row] for row in (0, 1, 3)])
        )
    ]
    assert by_model["precision"] == pytest.approx(np.mean(first))
    assert by_position["precision"] == pytest.approx((0.5 + 1 + 0) / 3)
    on_map = report.values["map"]
    assert [row["id"] for row in on_map] == ["d1", "d2", "d3", "d4"]
    assert [row["class"] for row in on_map] == ["tools", "wood", "wood", ""]
    fewer = SETTINGS.replace(examples=1, map_titles=3)
    some = report_on_documents(
        model, GIVEN, RunFolder(tmp_path), fewer, tmp_path
    ).values
    assert len(some["documents"]) == 1 and len(some["map"]) == 3


def test_page(report, explained, folder):
    path = folder / "r.html"
    report.write(path)
    page = HtmlPage(path.read_text())
    images = check_self_contained(page, path.read_text())
    assert len(images) == 2
    assert sorted(one.name for one in (folder / "pictures").iterdir()) == [
        "document_map.png", "loss.png",
    ]  # fmt: skip
    titles = [one.title for one in explained]
    assert page.of("h2") == [
        "Key sentences of all documents", *titles, "A map of documents",
        "Loss by epoch",
    ]  # fmt: skip
    assert "<b>Bolts</b>" in titles  # a text, not a tag
    shaded = [
        names for tag, names in page.tags if names.get("class") == "shaded"
    ]
    sentences = [one for each in explained for one in each.sentences]
    assert page.of("span") == [one.text for one in sentences]
    assert "Glue <i> & co" in page.of("span")
    cells = page.of("td")
    for one, names in zip(sentences, shaded, strict=True):
        (largest,) = [
            max(s.probability for s in each.sentences)
            for each in explained
            if one in each.sentences
        ]
        opacity = float((names["style"] or "").split("/ ")[1].rstrip(")"))
        expected = 0.5 * one.probability / largest
        assert opacity == pytest.approx(expected, abs=1e-3)
        assert f"p = {one.probability:.3f}" in (names["title"] or "")
        assert ("in S*" in (names["title"] or "")) == one.salient
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


def test_files_have_the_metrics_of_the_page(report, explained, tmp_path):
    for file, records in report.csv.items():
        write_csv(tmp_path / file, records)
    rows = {path.stem: read_csv(path) for path in tmp_path.iterdir()}
    found: dict[str, Any] = json.loads(json.dumps(report.values))
    assert [one["id"] for one in found["documents"]] == [
        one.id for one in explained
    ]
    for name in ("sentences", "predicted", "key_words", "nearest"):
        file = "predicted_words" if name == "predicted" else name
        expected = [
            {"document": one["id"], **record}
            for one in found["documents"]
            for record in one[name]
        ]
        assert rows.pop(file) == [
            {k: "" if v is None else str(v) for k, v in record.items()}
            for record in expected
        ]
    assert rows == {
        "map": [{k: str(v) for k, v in row.items()} for row in found["map"]]
    }
    assert found["map"][2]["class"] == "wood"


def test_documents_without_summaries(model, tmp_path):
    plain = [one._replace(summary=[], label="") for one in DOCUMENTS]
    report = report_on_documents(
        model,
        GIVEN._replace(documents=plain),
        RunFolder(tmp_path),
        SETTINGS.replace(examples=2),
        tmp_path,
    )
    agreements = {"model": None, "position": None}
    assert report.values["key_sentences"] == agreements
    report.write(tmp_path / "r.html")
    page = HtmlPage((tmp_path / "r.html").read_text())
    assert "Key sentences of all documents" not in page.of("h2")
    assert "S*" not in page.of("strong")
    assert len(page.of("h2")) == 3
