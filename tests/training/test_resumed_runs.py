"""Runs that are stopped, by Ctrl-C or by their figures, and resumed."""

import csv
import functools
import pathlib
from typing import Any, NamedTuple

import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.callbacks.best_epoch import RankingEvaluation
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.tools import train as program
from tests.conftest import TOPICS
from tests.training.small_trainings import (
    QUICK,
    EpochWeights,
    StopAt,
    check_equal,
)

STEPS = 8  # 120 clicks in batches of 16
RESUMED = dssm.Recipe(
    "DSSMEncoder", {"units": [3]}, negatives="in_batch", logq=True,
    hard_negatives=2, epochs=4, batch_size=16, learning_rate=0.3,
)  # fmt: skip
"""Mined before the third epoch; one epoch more after it."""


FIGURES = {1: 0.25, 2: 0.75, 3: 0.5, 4: 0.25}
"""Of each epoch on dev: the second is the best."""


def set_figures(patch: pytest.MonkeyPatch) -> list[int]:
    """Gives the epochs the figures above; holds the epochs evaluated."""
    epochs: list[int] = []

    def evaluate(self: RankingEvaluation) -> float:
        steps = int(self.model.optimizer.iterations.numpy())
        epochs.append(steps // STEPS)
        return FIGURES[epochs[-1]]

    patch.setattr(RankingEvaluation, "evaluate", evaluate)
    return epochs


@pytest.fixture
def figures(monkeypatch) -> list[int]:
    return set_figures(monkeypatch)


def trained(
    collection: pathlib.Path, output: pathlib.Path, *callbacks: Any
) -> dssm.TwoTower:
    return dssm.train(
        collection, RESUMED, output=output, dev=str(collection), seed=1,
        verbose=0, callbacks=callbacks,
    )  # fmt: skip


class WholeRun(NamedTuple):
    path: pathlib.Path
    epochs: dict[int, list[np.ndarray]]
    returned: list[np.ndarray]


@pytest.fixture(scope="module")
def whole_run(collection_folder, tmp_path_factory) -> WholeRun:
    """A run that was not stopped."""
    path = tmp_path_factory.mktemp("whole") / "run"
    epochs = EpochWeights()
    with pytest.MonkeyPatch.context() as patch:
        figures = set_figures(patch)
        model = trained(collection_folder, path, epochs)
    assert figures == [1, 2, 3, 4]
    return WholeRun(path, epochs.of, model.get_weights())


def history(run: pathlib.Path) -> list[dict[str, str]]:
    with (run / "history.csv").open() as file:
        return list(csv.DictReader(file))


def test_the_model_is_that_of_the_best_epoch(whole_run):
    best = whole_run.epochs[2]
    check_equal(whole_run.returned, best)
    check_equal(dssm.load_run(whole_run.path).get_weights(), best)
    assert abs(best[0] - whole_run.epochs[4][0]).max() > 1e-3
    rows = history(whole_run.path)
    assert [float(row["dev_mrr@10"]) for row in rows] == list(FIGURES.values())
    assert [row["updates"] for row in rows] == ["8", "16", "24", "32"]


STOPS = {3: None, 16: 1, 19: 2}
"""Training steps after which a run is stopped, and its best epoch then.

In the first epoch, before the figures of the best epoch, and with mined
negatives, after the best epoch.
"""


def test_stopped_and_resumed(whole_run, collection_folder, tmp_path, figures):
    """Weights, velocities, rows that are behind and the best epoch."""
    stops = [StopAt(step) for step in STOPS]
    for step, best in STOPS.items():
        with pytest.raises(KeyboardInterrupt):
            if step == min(STOPS):
                trained(collection_folder, tmp_path, *stops)
            else:
                dssm.resume(tmp_path, verbose=0, callbacks=stops)
        stopped = RunFolder(tmp_path).load_checkpoint()
        assert int(stopped.optimizer.iterations.numpy()) == step
        # What a user takes from the stopped run: the best epoch's weights, or
        # those of the last step.
        check_equal(
            dssm.load_run(tmp_path).get_weights(),
            whole_run.epochs[best] if best else stopped.get_weights(),
        )
    mined = (tmp_path / "hard_negatives.json.gz").rename(tmp_path / "mined")
    message = "found no negatives mined before.*or train anew"
    with pytest.raises(InputError, match=message):
        dssm.resume(tmp_path, verbose=0)
    mined.rename(tmp_path / "hard_negatives.json.gz")
    model = dssm.resume(tmp_path, verbose=0)
    assert figures == [1, 2, 3, 4]
    check_equal(model.get_weights(), whole_run.returned)
    check_equal(dssm.load_run(tmp_path).get_weights(), whole_run.returned)
    first, second = (
        RunFolder(path).load_checkpoint() for path in (whole_run.path, tmp_path)
    )
    check_equal(
        first.weights + first.optimizer.variables,
        second.weights + second.optimizer.variables,
    )
    assert [row["dev_mrr@10"] for row in history(tmp_path)] == [
        row["dev_mrr@10"] for row in history(whole_run.path)
    ]
    # Resumed once more, it is finished: nothing is trained or evaluated.
    again = dssm.resume(tmp_path, verbose=0)
    check_equal(again.get_weights(), whole_run.returned)
    assert figures == [1, 2, 3, 4]


def test_a_log_in_which_there_is_nothing_to_mine(tmp_path, capsys):
    """Each epoch is a `fit` of its own; one line warns of the loss of 0."""
    pairs = [("rope", "nylon rope")] * 20
    recipe = QUICK.replace(hard_negatives=2, mine_every=1, epochs=2)
    dssm.train(pairs, recipe, output=tmp_path, verbose=2)
    assert len(history(tmp_path)) == 2
    error = capsys.readouterr().err
    assert error.count("warning: the loss of epoch 1 is 0: nothing") == 1
    assert error.count("warning") == 1


def test_titles_and_judged_titles_of_python(tmp_path, monkeypatch):
    """A resumed run has the texts and negatives of an uninterrupted one."""
    compile_eagerly = functools.partialmethod(
        dssm.TwoTower.compile, run_eagerly=True
    )
    monkeypatch.setattr(dssm.TwoTower, "compile", compile_eagerly)
    pairs = [*TOPICS.values()] * 8
    recipe = QUICK.replace(judged_negatives=1, title_pairs=1)
    judged = {query: (f"not {query}", "n\u00e4gel") for query, _ in pairs}

    def trained(folder: pathlib.Path, *callbacks: StopAt) -> dssm.TwoTower:
        return dssm.train(
            pairs, recipe, output=folder, verbose=0, callbacks=callbacks,
            titles=iter(["a title without clicks"]), judged=judged,
        )  # fmt: skip

    whole = trained(tmp_path / "whole")
    cut = tmp_path / "cut"
    with pytest.raises(KeyboardInterrupt):
        trained(cut, StopAt(4))
    (cut / "title_pairs.tsv").unlink()  # is made again of all titles
    check_equal(dssm.resume(cut, verbose=0).get_weights(), whole.get_weights())
    assert "without" in (cut / "title_pairs.tsv").read_text()


def test_patience_ends_a_run_for_good(
    collection_folder, tmp_path, figures, capsys, monkeypatch
):
    """By the program: --dev, --select, --every and --patience."""
    monkeypatch.setitem(dssm.PRESETS, "dssm", QUICK.replace(epochs=9))
    run = tmp_path / "run"
    flags = [
        f"--data={collection_folder}", "--preset=dssm", "--patience=1",
        f"--dev={collection_folder}", "--select=ndcg@3",
    ]  # fmt: skip
    assert program.run(["train", *flags, f"--output={run}"]) == 0
    rows = history(run)
    assert [row["dev_ndcg@3"] for row in rows] == ["0.25", "0.75", "0.5"]
    config = RunFolder(run).read_config()
    names = ("dev", "select", "every", "patience")
    assert [config[name] for name in names] == [
        str(collection_folder), "ndcg@3", 1, 1,
    ]  # fmt: skip
    best = dssm.load_run(run).get_weights()
    capsys.readouterr()
    assert program.run(["train", "--resume", f"--output={run}"]) == 0
    assert "already finished" in capsys.readouterr().out
    assert figures == [1, 2, 3]
    check_equal(dssm.load_run(run).get_weights(), best)


def test_the_recipes_patience_is_the_default_where_there_is_dev(
    collection_folder, figures
):
    assert dssm.PRESETS["best"].patience == 3
    recipe = QUICK.replace(epochs=4, patience=1)
    for patience, evaluated in ((None, [1, 2, 3]), (2, [1, 2, 3, 4])):
        del figures[:]
        dssm.train(
            collection_folder, recipe, dev=str(collection_folder),
            patience=patience, verbose=0,
        )  # fmt: skip
        assert figures == evaluated


def test_a_relative_path_of_the_clicks(tmp_path, monkeypatch):
    """A run resumes from another working folder."""
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
    log = here / "clicks.tsv"
    log.write_text("".join(f"{q}\t{t}\n" for q, t in TOPICS.values()) * 4)
    monkeypatch.chdir(here)
    with pytest.raises(KeyboardInterrupt):
        dssm.train(
            "clicks.tsv", QUICK, output="run", validation="clicks.tsv",
            verbose=0, callbacks=[StopAt(3)],
        )  # fmt: skip
    monkeypatch.chdir(there)
    flags = ["--resume", "--output=../here/run", "--data=../here/clicks.tsv"]
    assert program.run(["train", *flags]) == 0
    assert [row["updates"] for row in history(here / "run")] == ["2", "4", "6"]
