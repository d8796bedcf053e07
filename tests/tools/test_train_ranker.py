"""Rankers by the programs: training, evaluation and export."""

import json
from pathlib import Path

import pytest

from keras_lstm_dssm.data import open_collection
from keras_lstm_dssm.evaluation import Task, system_of
from keras_lstm_dssm.export.publish.versions import find_models
from keras_lstm_dssm.run_folder import load_run
from keras_lstm_dssm.tools import analyze, evaluate, export, train
from tests.ranker.small_ranker import write_graded
from tests.tools.conftest import succeed

pytest.importorskip("lightgbm")


@pytest.fixture(scope="module")
def graded(tmp_path_factory) -> Path:
    return write_graded(tmp_path_factory.mktemp("graded") / "folder")


@pytest.fixture(scope="module")
def ranker_run(graded, trained_run, tmp_path_factory) -> Path:
    run = tmp_path_factory.mktemp("ranker") / "run"
    succeed(
        train, preset="ranker", data=graded, dev=graded, patience=2,
        features=trained_run, output=run, seed=3,
    )  # fmt: skip
    return run


def test_evaluate(graded, ranker_run, tmp_path):
    config = json.loads((ranker_run / "config.json").read_text())
    assert (config["seed"], config["select"]) == (3, "ndcg@3")
    assert config["ranker"]["options"]["patience"] == 2
    for mode in ("rerank", "retrieve"):
        out = tmp_path / f"{mode}.json"
        succeed(evaluate, run=ranker_run, data=graded, mode=mode, json=out)
        results = json.loads(out.read_text())["test"]
        assert results["bm25_words"] == "alphanumeric"
        task = Task.from_collection(open_collection(str(graded)), "test", mode)
        # As served: the towers find the candidates, none beyond the first 100.
        system = system_of(load_run(ranker_run))
        assert results["model"] == pytest.approx(
            task.evaluate(task.run(system)), abs=1e-9
        )
        stored = json.loads((ranker_run / "metrics.json").read_text())
        assert stored[f"test/{mode}"] == results
        assert stored["train"]["trees"] >= 1


def test_export(ranker_run, tmp_path):
    titles = tmp_path / "titles.txt"
    titles.write_text("a\tred steel hex bolt\nb\tblue wood glue\n")
    models = tmp_path / "models"
    succeed(export, run=ranker_run, output=models, documents=titles)
    assert list(find_models(models)) == ["ranker", "two_stage"]
    config = (models / "models.config").read_text()
    assert config.count("versions: 1") == 2


def test_what_is_refused(
    graded, ranker_run, trained_run, collection_folder,
    tmp_path, refused,
):  # fmt: skip
    def run(*flags: str) -> int:
        return train.run(
            [
                "train",
                f"--output={tmp_path / 'new'}",
                f"--data={graded}",
                *flags,
            ]
        )

    ranker = "--preset=ranker"
    refused(run(ranker, "--epochs=3"), "--epochs is not a flag of --preset=ra")
    refused(run("--features=x"), "features is used by a ranker only: leave it")
    refused(run(ranker, "--every=2"), "every is of models that are trained in")
    resumed = f"--output={trained_run}", "--resume"
    refused(run("--features=x", *resumed), "--features is for a new ranker")
    refused(
        run(ranker, f"--features={tmp_path / 'none'}"), "none: no model here"
    )
    refused(
        run(ranker, f"--features={ranker_run}"), "found a ranker, expected trai"
    )
    resumed = train.run(["train", f"--output={ranker_run}", "--resume"])
    refused(resumed, "found a ranker, which is trained in one go")
    again = train.run(
        ["train", ranker, f"--data={graded}", f"--output={ranker_run}"]
    )
    refused(again, "there is a run here already")
    page = f"--output={tmp_path / 'page.html'}"
    refused(
        analyze.run(["analyze", f"--run={ranker_run}", page]), "found a ranker"
    )
    assert not (tmp_path / "new").exists()
