"""Commands in docs/ have flags that exist, and the Python code there runs."""

import re
import shlex
import shutil
from pathlib import Path
from string import Template

import pytest

import keras_lstm_dssm as dssm
import lstm_dssm_programs
from keras_lstm_dssm.papers import PAPERS, choose_rows
from keras_lstm_dssm.serving import PredictionServer
from keras_lstm_dssm.settings.papers import PAPER_DEFAULTS, TableSettings
from keras_lstm_dssm.tools import evaluate
from keras_lstm_dssm.tools.flagged_recipe import flagged_recipe
from tests.conftest import TOPICS

DOCS = Path(__file__).parents[1] / "docs"
GUIDES = (
    *("documents", "evaluate", "tune", "retrain", "reranking"),
    *("results/few_clicks", "results/keyvec/README", "results/mv_lstm/README"),
)


def blocks(guide: str, language: str) -> list[str]:
    """Returns the code of a guide in one language."""
    page = (DOCS / f"{guide}.md").read_text()
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.DOTALL | re.M)


def commands(guide: str) -> list[list[str]]:
    """Returns the words of each command of our programs in a guide.

    Variables have the values that the guide's blocks set.
    """
    text = "".join(blocks(guide, "sh")).replace("\\\n", "")
    values = dict(re.findall(r"^(\w+)=(\S+)$", text, re.M)) | {"rate": "0.01"}
    return [
        shlex.split(Template(line).safe_substitute(values))
        for line in text.splitlines()
        if line.strip().startswith("lstm-dssm-")
    ]


@pytest.mark.parametrize("guide", GUIDES)
def test_commands_are_understood(guide: str) -> None:
    """Names and values of flags, recipes and rows of tables are right."""
    given = commands(guide)
    assert len(given) >= 2
    for name, *arguments in given:
        name = name.removeprefix("lstm-dssm-")
        program, _ = lstm_dssm_programs.find(name)
        assert program.check([name, *arguments]) is None, arguments
        values = program.flags
        if name == "train" and not values.init:
            flagged_recipe(values)
        if name == "table":
            assert choose_rows(PAPERS[values.paper].rows, values.systems)
    page = (DOCS / f"{guide}.md").read_text()
    known = {
        flag
        for name in (
            "evaluate",
            "export",
            "query",
            "serve",
            "split",
            "table",
            "train",
        )  # fmt: skip
        for flag in lstm_dssm_programs.find(name)[0].flags
    }
    assert set(re.findall(r"--(\w+)", page)) <= known | {
        "new_epochs",
        "nodecay",
    }


@pytest.fixture
def folders(
    collection_folder: Path, trained_run: Path, tmp_path: Path, monkeypatch
) -> Path:
    """The working directory, with the data and the run of the guides."""
    monkeypatch.chdir(tmp_path)
    for name in ("JUDGED", "FOLDER"):
        Path(name).symlink_to(collection_folder)
    shutil.copytree(trained_run, "RUN")  # evaluations write into it
    return tmp_path


def test_evaluate(folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, *_ = commands("evaluate")
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


def test_tune(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (block,) = blocks("tune", "python")
    monkeypatch.setitem(
        dssm.PRESETS, "best", dssm.PRESETS["best"].replace(epochs=1)
    )
    exec(block, {})
    config = dssm.run_folder.RunFolder("RUN_097").read_config()
    assert config["recipe"]["momentum_middle"] == 0.97
    assert config["patience"] == 3


def test_defaults_that_the_guides_name() -> None:
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


def test_reranking(
    tiny_models: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (block,) = blocks("reranking", "python")
    with PredictionServer(tiny_models, port=0) as server:
        exec(block.replace(":8500", f":{server.port}"), {})
    # The scorer of these models prefers short titles.
    ranked = capsys.readouterr().out.splitlines()[-1]
    assert ranked == "['bolt', 'steel angle', 'shelf bracket']"
