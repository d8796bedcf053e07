"""The report of a KeyVec: its page and its files have the same figures."""

import json
from pathlib import Path

import numpy as np
import pytest

from keras_lstm_dssm.analysis.keyvec_report import (
    DocumentFigures,
    document_figures,
    write_document_report,
)
from keras_lstm_dssm.analysis.tower_report import ReportDocuments
from keras_lstm_dssm.files import read_csv
from keras_lstm_dssm.models import KeyVec
from tests.analysis.html_page import HtmlPage, check_self_contained
from tests.analysis.small_report import DOCUMENTS, SENTENCES, TARGETS
from tests.models.small_keyvec import small_keyvec

GIVEN = ReportDocuments("test", DOCUMENTS, TARGETS, "bm25", {})
HISTORY = [
    {"epoch": e, "loss": 3 / e, "read_loss": 1 / e, "key_word_loss": 2 / e}
    for e in (1, 2)
]


@pytest.fixture(scope="module")
def model() -> KeyVec:
    return small_keyvec()


@pytest.fixture(scope="module")
def figures(model: KeyVec) -> DocumentFigures:
    return document_figures(model, GIVEN, map_method="pca")


def test_figures(model: KeyVec, figures: DocumentFigures) -> None:
    # d3 has no summary, so that its key sentences are not compared.
    assert sorted(one.id for one in figures.explained) == ["d1", "d2", "d4"]
    marks = [TARGETS.of(DOCUMENTS[row]).marks() for row in (0, 1, 3)]
    assert figures.by_model and figures.by_position
    assert figures.by_model.base_rate == pytest.approx(
        np.mean([each.mean() for each in marks])
    )
    first = [
        marks[n][np.argsort(-p, kind="stable")[: marks[n].sum()]].mean()
        for n, p in enumerate(
            model.probabilities([SENTENCES[row] for row in (0, 1, 3)])
        )
    ]
    assert figures.by_model.precision == pytest.approx(np.mean(first))
    assert figures.by_position.precision == pytest.approx((0.5 + 1 + 0) / 3)
    assert figures.ids == ["d1", "d2", "d3", "d4"]
    assert figures.map.labels == ["tools", "wood", "wood", ""]
    some = document_figures(model, GIVEN, 1, "pca", 3)
    assert len(some.explained) == 1 and len(some.ids) == 3


def test_page(figures: DocumentFigures, tmp_path: Path) -> None:
    path, pictures = tmp_path / "r.html", tmp_path / "pictures"
    write_document_report(path, GIVEN, figures, HISTORY, pictures)
    page = HtmlPage(path.read_text())
    images = check_self_contained(page, path.read_text())
    assert len(images) == 2
    assert sorted(one.name for one in pictures.iterdir()) == [
        "document_map.png", "loss.png",
    ]  # fmt: skip
    titles = [one.title for one in figures.explained]
    assert page.of("h2") == [
        "Key sentences of all documents", *titles, "A map of documents",
        "Loss by epoch",
    ]  # fmt: skip
    assert "<b>Bolts</b>" in titles  # a text, not a tag
    shaded = [
        names for tag, names in page.tags if names.get("class") == "shaded"
    ]
    sentences = [one for each in figures.explained for one in each.sentences]
    assert page.of("span") == [one.text for one in sentences]
    assert "Glue <i> & co" in page.of("span")
    cells = page.of("td")
    for one, names in zip(sentences, shaded, strict=True):
        (largest,) = [
            max(s.probability for s in each.sentences)
            for each in figures.explained
            if one in each.sentences
        ]
        opacity = float((names["style"] or "").split("/ ")[1].rstrip(")"))
        expected = 0.5 * one.probability / largest
        assert opacity == pytest.approx(expected, abs=1e-3)
        assert f"p = {one.probability:.3f}" in (names["title"] or "")
        assert ("in S*" in (names["title"] or "")) == one.salient
        assert f"{one.probability:.3f}" in cells  # beside the sentence
    assert page.of("strong").count("S*") == 2 + 1 + 1
    for document in figures.explained:
        for near in document.nearest:
            assert f"{near.cosine:.4f}" in page.of("th")
            assert near.title in cells
        for word in document.predicted:
            assert word.word in page.of("strong" if word.is_key_word else "td")
            assert f"{word.probability:.4f}" in cells
    assert "gizmo" in cells


def test_files_have_the_figures_of_the_page(
    figures: DocumentFigures, tmp_path: Path
) -> None:
    figures.write_csv(tmp_path / "new")
    rows = {path.stem: read_csv(path) for path in (tmp_path / "new").iterdir()}
    found = json.loads(json.dumps(figures.as_json()))
    assert [one["id"] for one in found["documents"]] == [
        one.id for one in figures.explained
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
    model = found["key_sentences"]["model"]
    assert model["base_rate"] == figures.by_model.base_rate


def test_documents_without_summaries(model: KeyVec, tmp_path: Path) -> None:
    plain = [one._replace(summary=[], label="") for one in DOCUMENTS]
    given = GIVEN._replace(documents=plain)
    figures = document_figures(model, given, 2, "pca")
    assert figures.by_model is figures.by_position is None
    assert figures.as_json()["key_sentences"]["model"] is None
    write_document_report(tmp_path / "r.html", given, figures)
    page = HtmlPage((tmp_path / "r.html").read_text())
    assert "Key sentences of all documents" not in page.of("h2")
    assert "S*" not in page.of("strong")
    assert len(page.of("h2")) == 3
