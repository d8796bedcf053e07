"""The Python code in docs/ runs, and so does a command of evaluation."""

import re
import shutil
from pathlib import Path

import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.serving import PredictionServer
from keras_lstm_dssm.settings.papers import PAPER_DEFAULTS, TableSettings
from keras_lstm_dssm.tools import evaluate
from tests.conftest import TOPICS
from tests.test_pages import commands

DOCS = Path(__file__).parents[1] / "docs"


def blocks(guide: str, language: str) -> list[str]:
    """Returns the code of a guide in one language."""
    page = (DOCS / f"{guide}.md").read_text()
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.DOTALL | re.M)


@pytest.fixture
def folders(collection_folder, trained_run, tmp_path, monkeypatch) -> Path:
    """The working directory, with the data and the run of the guides."""
    monkeypatch.chdir(tmp_path)
    for name in ("JUDGED", "FOLDER"):
        Path(name).symlink_to(collection_folder)
    shutil.copytree(trained_run, "RUN")  # evaluations write into it
    return tmp_path


def test_evaluate(folders, capsys):
    first, *_ = commands("docs/evaluate")
    assert evaluate.run(first) == 0
    assert Path("RUN/CARD.md").exists()
    metrics = dssm.run_folder.RunFolder("RUN").read_metrics()
    assert metrics["test"] == metrics["test/retrieve"]
    assert "words of bm25: separated by white space" in capsys.readouterr().out
    (block,) = blocks("evaluate", "python")
    names: dict = {}
    exec(block, names)
    test, robust = capsys.readouterr().out.splitlines()
    assert test.startswith("{'difference': ") and "'p_holm': " in test
    of_model = names["values"]["model"]
    mean = sum(of_model.values()) / len(TOPICS)
    assert mean == pytest.approx(metrics["test"]["model"]["mrr@10"])
    assert 0 < float(robust) <= 1
    assert names["wrong"] != names["task"].queries


def test_train(folders, monkeypatch):
    block, _ = blocks("train", "python")
    monkeypatch.setitem(
        dssm.PRESETS, "best", dssm.PRESETS["best"].replace(epochs=1)
    )
    exec(block, {})
    config = dssm.run_folder.RunFolder("RUN_097").read_config()
    assert config["recipe"]["momentum_middle"] == 0.97
    assert config["patience"] == 3


def test_defaults_that_the_guides_name():
    patient = {n for n, recipe in dssm.PRESETS.items() if recipe.patience}
    assert patient == {"best", "taught"}
    best = dssm.PRESETS["best"]
    assert (best.patience, best.learning_rate, best.gamma) == (3, 0.03, 16)
    assert (best.negatives, best.title_pairs, best.hard_negatives) == (
        "in_batch", 1, 1,
    )  # fmt: skip
    ends = best.momentum_ends, best.momentum_middle, best.momentum_fraction
    assert ends == (0.9, 0.995, 0.02)
    settings = TableSettings("api", **PAPER_DEFAULTS["table_iv"])
    assert (settings.search, settings.dev_evaluations) == (0.15, 5)


def test_rerank(tiny_models, capsys):
    *_, block = blocks("rerank", "python")
    with PredictionServer(tiny_models, port=0) as server:
        exec(block.replace(":8500", f":{server.port}"), {})
    # The scorer of these models prefers short titles.
    ranked = capsys.readouterr().out.splitlines()[-1]
    assert ranked == "['bolt', 'steel angle', 'shelf bracket']"
