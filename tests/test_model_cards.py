"""CARD.md of a run, from its files and from the programs."""

import hashlib
from pathlib import Path

import pytest
import yaml

from keras_lstm_dssm import model_cards
from keras_lstm_dssm.analysis.report import card_section
from keras_lstm_dssm.data import ClickLog, Document, statistics, write_documents
from keras_lstm_dssm.distillation.outside_encoder import licence_of
from keras_lstm_dssm.distillation.teacher_vectors import teach
from keras_lstm_dssm.files import write_json
from keras_lstm_dssm.fingerprints import files_hash
from keras_lstm_dssm.model_cards import run_card
from keras_lstm_dssm.plain_files import read_json
from tests.training.small_documents import write_small_documents


@pytest.fixture
def clicks(tmp_path) -> Path:
    path = tmp_path / "clicks.tsv"
    path.write_text("bolt\tsteel hex bolt\nклей\tклей по дереву\n", "utf-8")
    return path


@pytest.fixture
def run(tmp_path, clicks: Path) -> Path:
    folder = tmp_path / "hardware"
    folder.mkdir()
    recipe = {"encoder": "LSTMEncoder", "encoder_config": {"cells": 32},
              "epochs": 3, "threshold": None}  # fmt: skip
    config = {"version": "0.3.0", "data": str(clicks), "seed": 7, "pairs": 2,
              "bad_lines": 0, "recipe": recipe, "dev": None}  # fmt: skip
    write_json(folder / "config.json", config)
    return folder


def read(card: str) -> tuple[dict, str]:
    _, head, text = card.split("---\n", 2)
    return yaml.safe_load(head), text


def test_what_was_trained(run, clicks):
    model_cards.record_training(run, ClickLog(clicks))
    head, text = read((run / "CARD.md").read_text())
    assert head["library_name"] == "keras"
    assert head["pipeline_tag"] == "sentence-similarity"
    assert "model-index" not in head
    assert "# hardware\nA pair of encoders" in text
    digest = hashlib.sha256()
    content = clicks.read_bytes()
    digest.update(f"clicks.tsv {len(content)}\n".encode() + content)
    assert f"| SHA-256 of the data | `{digest.hexdigest()}` |" in text
    assert f"| files, bytes | 1, {len(content)} |" in text
    assert "| training examples | 2 |" in text
    assert "| seed | 7 |" in text
    assert "| cells | `32` |" in text
    assert "threshold" not in text
    assert "first 2 clicks: Latin 50.0 %, Cyrillic 50.0 %" in text
    assert "Letters other than a to z" in text
    assert "Not evaluated yet" in text


@pytest.mark.parametrize(("max_words", "limit"), [
    ({}, "At most 128 words of a text"), ({"max_words": 9}, "At most 9 words"),
    ({"max_words": None}, None),
])  # fmt: skip
def test_how_many_words_are_read(max_words, limit):
    recipe = {"encoder": "LSTMEncoder", "encoder_config": max_words}
    card = run_card("r", {"data": "x", "recipe": recipe}, {})
    assert limit in card if limit else "At most" not in card


def test_figures_beside_bm25(run, clicks):
    model_cards.record_training(run)
    measured = {
        "model": {"q": {"mrr@10": 1.0}, "r": {"mrr@10": 0.5}},
        "bm25": {"q": {"mrr@10": 0.5}, "r": {"mrr@10": 0.5}},
    }
    started = read_json(run / "card.json")["training"]["started"]
    model_cards.record_evaluation(
        run, "test/retrieve", str(clicks), measured, 1234
    )
    head, text = read((run / "CARD.md").read_text())
    (model,) = head["model-index"]
    (result,) = model["results"]
    assert model["name"] == "hardware"
    assert result["task"] == {"type": "text-retrieval"}
    assert result["dataset"]["split"] == "test"
    assert result["metrics"] == [
        {"type": "mrr_at_10", "name": "mrr@10", "value": 0.75}
    ]
    assert "2 queries, 1,234 documents" in text
    assert "| model | 75.0 ± 49.0 |" in text
    assert "| bm25 | 50.0 |" in text
    assert "| difference to bm25 | 25.0 ± 49.0 |" in text
    training, figures = model_cards.card_tables(run)
    section = card_section([training, figures])
    assert section.blocks[0].rows[0] == ["version", "0.3.0"]
    assert section.blocks[1].header == ["", "mrr@10"]
    assert section.blocks[1].rows[2] == ["difference to bm25", "25.0 ± 49.0"]
    # What the training has recorded stays, and a later evaluation replaces.
    assert f"| started | {started} |" in text
    model_cards.record_evaluation(
        run, "test/retrieve", str(clicks), measured, 99
    )
    text = (run / "CARD.md").read_text()
    assert text.count("documents, 2") == 1
    assert "99 documents" in text


def test_the_digest_of_a_folder_of_documents(tmp_path):
    write_small_documents(tmp_path / "folder")
    facts = statistics.data_statistics(str(tmp_path / "folder"))
    found = [p for p in sorted((tmp_path / "folder").rglob("*")) if p.is_file()]
    assert {"documents.jsonl.gz", "queries.jsonl.gz"} <= {p.name for p in found}
    assert facts["files"] == len(found)
    assert facts["bytes"] == sum(path.stat().st_size for path in found)
    assert facts["sha256"] == files_hash(found)


def test_data_that_are_gone(tmp_path):
    assert statistics.data_statistics(str(tmp_path / "no.tsv")) == {
        "spec": str(tmp_path / "no.tsv")
    }
    assert model_cards.card_tables(tmp_path) == []
    card = run_card(
        "r", {"data": "x", "recipe": {"matcher": "ARCI"}}, {"training": {}}
    )
    assert "the files could not be read" in card
    assert "pipeline_tag: text-ranking" in card


def test_texts(clicks):
    assert statistics.scripts(["ab", "7", "é"]) == {"LATIN": 1.0}
    assert statistics.text_statistics(ClickLog(clicks))["title_words"] == [3, 3]
    assert statistics.text_statistics(None) == {}


def test_documents(tmp_path):
    manual = Document("m1", "Glue", ["Warm the glue.", "Wait."], [])
    folder = tmp_path / "manuals"
    write_documents(folder, [manual], {}, {})
    assert statistics.document_statistics(str(folder)) == {
        "documents": 1, "scripts": {"LATIN": 1.0}, "sentences": [2, 2],
        "sentence_words": [2, 2],
    }  # fmt: skip
    without_train = tmp_path / "test"
    write_documents(without_train, [manual._replace(split="test")], {}, {})
    assert statistics.document_statistics(str(without_train)) == {}
    assert statistics.document_statistics(str(tmp_path / "moved")) == {}


def test_the_licence_of_a_teacher(run, tmp_path):
    """It is read from the encoder's folder or package by `teach`.

    The cards of trained runs and of exported models then name it.
    """
    front = "---\ntags: []\nlicense: apache-2.0 \n---\nlicense: none\n"
    (tmp_path / "README.md").write_text(front)
    assert licence_of(str(tmp_path)) == "apache-2.0"
    assert licence_of("pytest:main") == "MIT"
    assert licence_of("no_such_module:f") is None
    encoder = "tests.test_model_cards:lengths"
    teach(None, encoder, tmp_path / "teach", titles=["hex bolt", "glue"])
    settings = tmp_path / "teach" / "teacher.json"
    assert "licence" not in read_json(settings)
    for licence in (None, "MIT"):
        write_json(settings, read_json(settings) | {"licence": licence})
        write_json(run / "config.json", read_json(run / "config.json")
                   | {"teacher": str(tmp_path / "teach")})  # fmt: skip
        model_cards.record_training(run)
        known = licence or "not known, ask its authors"
        text = f"`{encoder}` (licence: {known})"
        assert f"| taught by | {text} |" in (run / "CARD.md").read_text()
        model_cards.write_models_card(
            tmp_path, {"retriever": 2}, None, 2, str(tmp_path / "teach")
        )
        assert (
            f"titles in `retriever`: {text}."
            in (tmp_path / "CARD.md").read_text()
        )
    teach(None, str(tmp_path / "teach"), tmp_path / "again", titles=["glue"])
    assert read_json(tmp_path / "again" / "teacher.json")["licence"] == "MIT"


def lengths(texts: list[str]) -> list[list[int]]:
    return [[len(text), 1] for text in texts]


@pytest.mark.usefixtures("remembered_graphs", "remembered_runs")
def test_train_and_evaluate_write_it(trained_run, collection_folder, tmp_path):
    import shutil

    from keras_lstm_dssm.tools import evaluate, export

    run = tmp_path / "run"
    shutil.copytree(trained_run, run)
    trained = read_json(run / "card.json")
    assert trained["training"]["data"]["files"] == 5
    assert trained["training"]["texts"]["scripts"] == {"LATIN": 1.0}
    flags = [f"--run={run}", f"--data={collection_folder}"]
    assert evaluate.program.run(["evaluate", *flags, "--mode=retrieve"]) == 0
    facts = read_json(run / "card.json")
    entry = facts["evaluations"]["test/retrieve"]
    figures = read_json(run / "metrics.json")["test/retrieve"]
    assert (entry["queries"], entry["documents"]) == (6, 6)
    assert entry["data"]["sha256"] == trained["training"]["data"]["sha256"]
    for system in ("model", "bm25", "random"):
        for measure, (mean, _) in entry["systems"][system].items():
            assert mean == pytest.approx(figures[system][measure], abs=1e-6)
    titles = tmp_path / "titles.txt"
    titles.write_text("hex bolt\nwood glue\n")
    models = tmp_path / "models"
    flags = [f"--run={run}", f"--documents={titles}", f"--output={models}"]
    for version in (1, 2):
        assert export.program.run(["export", *flags]) == 0
        head, text = read((models / "CARD.md").read_text())
        assert "tf-serving" in head["tags"]
        assert text.count("| `retriever` |") == 1
        assert f"| `retriever` | {version} | " in text
        assert " | 2 | run |" in text
        assert "## run: pair of encoders" in text
        assert "difference to bm25" in text
