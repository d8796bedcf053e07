"""dssm.train and dssm.resume: one recipe and one seed, the same weights."""

import csv
import functools
import pathlib
from typing import Any, NamedTuple

import keras
import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.data import ClickLog
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import Task
from keras_lstm_dssm.folder_lock import lock_folder
from keras_lstm_dssm.tables import TableSettings, open_table_data
from keras_lstm_dssm.tables.rows import Row
from keras_lstm_dssm.tables.tower_rows import train_towers
from keras_lstm_dssm.tools import train as program
from keras_lstm_dssm.training import RankingEvaluation, RunFolder
from tests.conftest import TOPICS
from tests.training.small_trainings import (
    BEST,
    PAPER,
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


class StartWeights(keras.callbacks.Callback):
    """Keeps the weights before the first training step."""

    def on_train_begin(self, logs: Any = None) -> None:
        self.weights = [v.numpy() for v in self.model.trainable_variables]


@pytest.mark.parametrize(
    ("preset", "recipe"), [("dssm", PAPER), ("best", BEST)]
)
def test_three_roads_lead_to_one_model(
    preset: str,
    recipe: dssm.Recipe,
    collection_folder: pathlib.Path,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Python, the program and the table: weights equal bit for bit."""
    monkeypatch.setitem(dssm.PRESETS, preset, recipe)
    if preset == "best":  # its eight steps take less time than their trace
        compile_eagerly = functools.partialmethod(
            dssm.TwoTower.compile, run_eagerly=True
        )
        monkeypatch.setattr(dssm.TwoTower, "compile", compile_eagerly)
    start = StartWeights()
    python = dssm.train(
        collection_folder, preset, seed=3, verbose=0, callbacks=[start]
    )
    built = dssm.TwoTower.from_preset(preset, seed=3)
    check_equal([v.numpy() for v in built.trainable_variables], start.weights)

    run = tmp_path / "run"
    flags = [f"--data={collection_folder}", f"--preset={preset}", "--seed=3"]
    assert program.run(["train", *flags, f"--output={run}"]) == 0
    check_equal(dssm.load_run(run).get_weights(), python.get_weights())

    settings = TableSettings(
        str(collection_folder),
        batch_size=recipe.batch_size,
        dev_evaluations=1,  # after the last epoch, which then is the best
    )
    trained = train_towers(
        Row("a row", None, recipe, tuned=preset != "best"),
        {"learning_rate": recipe.learning_rate, "gamma": recipe.gamma},
        3,
        open_table_data(settings, tmp_path),
        settings,
        recipe.epochs,
    )
    for tower, encode in (
        (python.query_encoder, trained.system.encode_query),
        (python.document_encoder, trained.system.encode_document),
    ):
        check_equal(encode.__self__.get_weights(), tower.get_weights())
    if preset == "best":
        assert not python.needs_adapt
        assert built.needs_adapt
        assert len((run / "title_pairs.tsv").read_text().splitlines()) == 6
        assert (run / "hard_negatives.json.gz").exists()


def test_clicks_may_come_in_any_form(tmp_path: pathlib.Path) -> None:
    """A path, a log or pairs: the same clicks give the same weights."""
    pairs = list(TOPICS.values()) * 3
    path = tmp_path / "clicks.tsv"
    path.write_text("".join(f"{query}\t{title}\n" for query, title in pairs))
    recipe = QUICK.replace(epochs=1)
    models = [
        dssm.train(clicks, recipe, verbose=0)
        for clicks in (str(path), ClickLog(path), iter(pairs))
    ]
    for model in models[1:]:
        check_equal(model.get_weights(), models[0].get_weights())


@pytest.mark.parametrize("buckets", [0, 8])
def test_a_log_in_another_script(
    buckets: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its words are known by their lengths alone, unless rows are added."""
    recipe = QUICK.replace(epochs=1).with_encoder(oov_buckets=buckets)
    dssm.train([("болт", "стальной болт")] * 4, recipe, verbose=2)
    warned = "oov_buckets" in capsys.readouterr().err
    assert warned == (buckets == 0)


# --- runs that are stopped and resumed


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
def figures(monkeypatch: pytest.MonkeyPatch) -> list[int]:
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
def whole_run(
    collection_folder: pathlib.Path, tmp_path_factory: pytest.TempPathFactory
) -> WholeRun:
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


def test_the_model_is_that_of_the_best_epoch(whole_run: WholeRun) -> None:
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


def test_stopped_and_resumed(
    whole_run: WholeRun,
    collection_folder: pathlib.Path,
    tmp_path: pathlib.Path,
    figures: list[int],
) -> None:
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


def test_a_log_in_which_there_is_nothing_to_mine(
    tmp_path: pathlib.Path,
) -> None:
    pairs = [("rope", "nylon rope")] * 20
    recipe = QUICK.replace(hard_negatives=2, mine_every=1, epochs=2)
    dssm.train(pairs, recipe, output=tmp_path, verbose=0)
    assert len(history(tmp_path)) == 2


def test_patience_ends_a_run_for_good(
    collection_folder: pathlib.Path,
    tmp_path: pathlib.Path,
    figures: list[int],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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


def test_a_task_is_for_a_training_without_a_folder(
    tmp_path: pathlib.Path,
) -> None:
    names = {name: texts[1] for name, texts in TOPICS.items()}
    task = Task(
        {name: query for name, (query, _) in TOPICS.items()},
        names,
        {name: {name: 1} for name in names},
        depth=6,
    )
    pairs = list(TOPICS.values())
    with pytest.raises(InputError, match="dev is a Task, which a run folder c"):
        dssm.train(pairs, QUICK, dev=task, output=tmp_path / "run", verbose=0)
    assert not (tmp_path / "run").exists()
    seen = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: figures.append(logs["dev_p@1"])
    )
    figures: list[float] = []
    dssm.train(
        pairs, QUICK, dev=task, select="p@1", verbose=0, callbacks=[seen]
    )
    assert len(figures) == 3 and all(0 < figure <= 1 for figure in figures)


# --- what is written, and where


def test_the_lock_is_taken_before_anything_is_written(
    collection_folder: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    run = tmp_path / "run"
    with (
        lock_folder(run, "training"),
        pytest.raises(InputError, match="another process is training here"),
    ):
        dssm.train(list(TOPICS.values()), QUICK, output=run, verbose=0)
    assert [path.name for path in run.iterdir()] == [".lock"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dev": "nowhere"}, "nowhere: found nothing there, expected 'api'"),
        ({"select": "mrr@7", "dev": "{}"}, "measure is 'mrr@7': expected one"),
        ({"patience": 0, "dev": "{}"}, "patience is 0: expected 1 or more"),
        ({"validation": "nowhere.tsv"}, "nowhere.tsv: no such file"),
        ({"recipe": "gru"}, "unknown preset 'gru'"),
    ],
    ids=str,
)  # fmt: skip
def test_wrong_input_leaves_no_folder(
    options: dict,
    message: str,
    collection_folder: pathlib.Path,
    tmp_path: pathlib.Path,
) -> None:
    options = {"recipe": QUICK, "verbose": 0, **options}
    if options.get("dev") == "{}":
        options["dev"] = collection_folder
    with pytest.raises(InputError, match=message) as caught:
        dssm.train(list(TOPICS.values()), output=tmp_path / "run", **options)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_a_relative_path_of_the_clicks(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
