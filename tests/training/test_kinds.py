"""What holds for every kind of training."""

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.callbacks.best_epoch import (
    RankingEvaluation,
    ValidationLoss,
)
from keras_lstm_dssm.errors import FailedTraining, InputError
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.tools import train as program
from tests.kit.kinds import KINDS, STEPS, Kind, outputs
from tests.training.small_trainings import EpochWeights, StopAt, check_equal

pytest.importorskip("gensim")
pytest.importorskip("sklearn")
pytestmark = pytest.mark.usefixtures("kinds_data", "eager")

each_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
each_with_dev = pytest.mark.parametrize(
    "kind",
    [kind for kind in KINDS.values() if kind.measure],
    ids=[name for name, kind in KINDS.items() if kind.measure],
)

FIGURES = {1: 0.25, 2: 0.75, 3: 0.5, 4: 0.25}
"""Of each epoch on dev: the second is the best."""


@pytest.fixture
def figures(monkeypatch) -> list[int]:
    """Gives the epochs the figures above; holds the epochs evaluated."""
    epochs: list[int] = []

    def evaluate(self: Any) -> float:
        steps = int(self.model.optimizer.iterations.numpy())
        epochs.append(steps // STEPS)
        return FIGURES[epochs[-1]]

    def metrics(self: ValidationLoss) -> dict[str, float]:
        return {"val_loss": 1 - evaluate(self)}

    monkeypatch.setattr(RankingEvaluation, "evaluate", evaluate)
    monkeypatch.setattr(ValidationLoss, "metrics", metrics)
    return epochs


def measured(kind: Kind, epochs: int) -> list[float]:
    """Returns the figures of the first epochs, as `history.csv` has them."""
    is_loss = kind.measure == "val_loss"
    return [abs(is_loss - FIGURES[epoch + 1]) for epoch in range(epochs)]


def state(run: RunFolder) -> list[np.ndarray]:
    """Returns weights and optimizer of a run's last checkpoint."""
    model = run.load_checkpoint()
    variables = model.weights + model.optimizer.variables
    return [variable.numpy() for variable in variables]


@each_kind
def test_python_and_the_program_give_one_model(kind, monkeypatch, capsys):
    python = kind.train(seed=3)
    flags = ["train", *kind.flags(monkeypatch), "--seed=3", "--output=run"]
    assert program.run(flags) == 0
    assert kind.described in capsys.readouterr().out
    check_equal(dssm.load_run("run").get_weights(), python.get_weights())
    assert program.run([*flags, "--resume"]) == 0
    assert "already finished" in capsys.readouterr().out


STOPS = {1: None, 2 * STEPS: 1, 2 * STEPS + 1: 2}
"""Training steps after which a run is stopped, and its best epoch then.

In the first epoch; before the figures of the best epoch, and before negatives
are mined; after the best epoch, and with the mined negatives.
"""


@each_kind
def test_a_stopped_run_ends_as_an_undisturbed_one(kind, tmp_path, figures):
    """From another working folder, also where a model or vectors have gone."""
    kept = EpochWeights()
    whole = RunFolder(tmp_path / "whole")
    model = kind.train(output=whole.path, callbacks=[kept])
    expected = kept.of[2 if kind.measure else 3]
    check_equal(model.get_weights(), expected)
    check_equal(whole.load_model().get_weights(), expected)
    assert abs(kept.of[2][-1] - kept.of[3][-1]).max() > 0

    run = RunFolder(tmp_path / "run")
    stops = [StopAt(step) for step in STOPS]
    for step, best in STOPS.items():
        with pytest.raises(KeyboardInterrupt):
            if step == min(STOPS):
                kind.train(output=run.path, callbacks=stops)
            else:
                dssm.resume(run.path, verbose=0, callbacks=stops)
        if kind.gone:
            shutil.rmtree(kind.gone, ignore_errors=True)
        os.chdir(tmp_path)
        stopped = run.load_checkpoint()
        assert int(stopped.optimizer.iterations) == step
        # What a user takes from the stopped run: the best epoch's weights, or
        # those of the last step.
        is_kept = best and kind.measure
        check_equal(
            run.load_model().get_weights(),
            kept.of[best] if is_kept else stopped.get_weights(),
        )
    for name, message in kind.kept.items():
        path = run.path / name
        content = path.read_bytes()
        for damaged in (content[:40], None):
            path.unlink()
            if damaged:
                path.write_bytes(damaged)
            with pytest.raises(InputError, match=message):
                dssm.resume(run.path, verbose=0)
        path.write_bytes(content)
    lost = [run.path / name for name in kind.made_again]
    contents = [path.read_bytes() for path in lost]
    for path in lost:
        path.unlink()

    for _ in range(2):  # resumed once more, it is finished
        resumed = dssm.resume(run.path, verbose=0)
        check_equal(resumed.get_weights(), expected)
        check_equal(run.load_model().get_weights(), expected)
        check_equal(state(run), state(whole))
        assert figures == [1, 2, 3] * (len(figures) // 3)
    assert [path.read_bytes() for path in lost] == contents
    rows = run.read_history()
    if kind.measure:
        found = [row[kind.measure] for row in rows]
        assert found == measured(kind, 3)
        assert [row["updates"] for row in rows] == [2, 4, 6]


@each_with_dev
def test_patience_ends_a_run_for_good(kind, monkeypatch, figures, capsys):
    longer = kind._replace(recipe=kind.recipe.replace(epochs=9))
    flags = [*longer.flags(monkeypatch), "--patience=1", "--output=run"]
    assert program.run(["train", *flags]) == 0
    run = RunFolder("run")
    found = [row[kind.measure] for row in run.read_history()]
    assert found == measured(kind, 3)
    config = run.read_config()
    assert config["patience"] == 1
    weights = run.load_model().get_weights()
    capsys.readouterr()
    assert program.run(["train", "--resume", "--output=run"]) == 0
    assert "already finished" in capsys.readouterr().out
    assert figures == [1, 2, 3]
    check_equal(run.load_model().get_weights(), weights)


class Spoil(keras.callbacks.Callback):
    """Fills a weight with NaN after a training step, counted from 1."""

    def __init__(self, step: int) -> None:
        super().__init__()
        self.step = step

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if int(self.model.optimizer.iterations.numpy()) == self.step:
            weight = self.model.trainable_variables[-1]
            weight.assign(np.full(weight.shape, np.nan, np.float32))


@each_kind
def test_a_loss_that_is_no_number_stops_with_the_texts(kind, figures):
    """The last good state is that of the epoch before."""
    run = RunFolder("run")
    with pytest.raises(FailedTraining) as error:
        kind.train(output="run", callbacks=[Spoil(STEPS + 1)])
    found = re.fullmatch(
        rf"training step {STEPS + 2}: the loss is NaN or infinite; its batch"
        rf" begins with '(.+?)'.*; the last good state is in {run.checkpoint};"
        r" train anew in another --output with a smaller --learning_rate, or"
        r" correct the texts",
        str(error.value),
    )
    assert found
    data = [*Path().rglob("*.tsv"), *Path().rglob("*.jsonl")]
    assert any(found[1] in path.read_text() for path in data)
    assert all(np.isfinite(value).all() for value in state(run))
    assert int(run.load_checkpoint().optimizer.iterations) == STEPS
    assert [p.name for p in run.checkpoint.parent.iterdir()] == ["last.keras"]
    assert run.model.exists() == bool(kind.measure)


@each_kind
def test_data_that_have_changed_are_not_resumed(kind):
    with pytest.raises(KeyboardInterrupt):
        kind.train(output="run", callbacks=[StopAt(1)])
    kind.change()
    with pytest.raises(InputError, match=kind.changed) as error:
        dssm.resume("run", verbose=0)
    assert "\n" not in str(error.value)


def test_models_are_loaded_by_a_fresh_process(fresh_process):
    """Of all kinds, each after a training step."""
    found = {}
    for number, kind in enumerate(KINDS.values()):
        with pytest.raises(KeyboardInterrupt):
            kind.train(output=f"run{number}", callbacks=[StopAt(1)])
        path = Path(f"run{number}").absolute()
        found[path] = outputs(dssm.load_run(path))
    code = (
        "import json, sys, keras_lstm_dssm as dssm\n"
        "models = [dssm.load_run(path) for path in sys.argv[1:]]\n"
        "from tests.kit.kinds import outputs\n"
        "print(json.dumps([outputs(model) for model in models]))\n"
    )
    loaded = json.loads(fresh_process(code, *found)[-1])
    for values, expected in zip(loaded, found.values(), strict=True):
        for row, other in zip(values, expected, strict=True):
            np.testing.assert_allclose(row, other, rtol=1e-6, atol=1e-6)
