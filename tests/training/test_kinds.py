"""What holds for every kind of training."""

import gzip
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.callbacks import ValidationLoss
from keras_lstm_dssm.errors import FailedTraining, InputError
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.tools.train import program
from tests.kit.eager import eager_steps
from tests.kit.equal import check_equal
from tests.kit.kinds import KINDS, STEPS, Kind, outputs, write_data
from tests.training.small_trainings import EpochWeights, StopAt

pytest.importorskip("gensim")
pytest.importorskip("sklearn")
pytestmark = pytest.mark.usefixtures("kinds_data", "eager", "figures")

FIGURES = {1: 0.25, 2: 0.75, 3: 0.5}
"""Of each epoch on dev: the second is the best, and the third the last."""


def set_figures(patch: pytest.MonkeyPatch) -> list[int]:
    """Gives the epochs the figures above; holds the epochs evaluated."""
    epochs: list[int] = []

    def evaluate(self: Any) -> float:
        epochs.append(int(self.model.optimizer.iterations) // STEPS)
        return FIGURES[epochs[-1]]

    def metrics(self: ValidationLoss) -> dict[str, float]:
        return {"val_loss": 1 - evaluate(self)}

    patch.setattr(dssm.RankingEvaluation, "evaluate", evaluate)
    patch.setattr(ValidationLoss, "metrics", metrics)
    return epochs


@pytest.fixture
def figures(monkeypatch) -> list[int]:
    return set_figures(monkeypatch)


class Whole(NamedTuple):
    """A run that was not stopped; tests only read it."""

    kind: Kind
    data: Path
    run: RunFolder
    epochs: dict[int, list[np.ndarray]]  # epoch, from 1 -> weights after it
    weights: list[np.ndarray]  # of the model that was returned


@pytest.fixture(scope="module", params=KINDS.values(), ids=KINDS)
def whole(request, made_once, tmp_path_factory) -> Whole:
    data = tmp_path_factory.mktemp("whole") / "data"
    shutil.copytree(made_once("kinds", write_data), data)
    kept = EpochWeights()
    with eager_steps(), pytest.MonkeyPatch.context() as patch:
        patch.chdir(data)
        epochs = set_figures(patch)
        model = request.param.train(output="run", callbacks=[kept])
    assert epochs in ([1, 2, 3], [])
    run = RunFolder(data / "run")
    return Whole(request.param, data, run, kept.of, model.get_weights())


def state(run: RunFolder) -> list[np.ndarray]:
    """Returns weights and optimizer of a run's last checkpoint."""
    model = run.load_checkpoint()
    variables = model.weights + model.optimizer.variables
    return [variable.numpy() for variable in variables]


def test_the_model_is_that_of_the_best_epoch_or_of_the_last(whole):
    kind, best = whole.kind, whole.epochs[2 if whole.kind.measure else 3]
    check_equal(whole.weights, best)
    check_equal(whole.run.load_model(), best)
    rows = whole.run.read_history()
    assert [row["updates"] for row in rows] == [2, 4, 6]
    if kind.measure:
        is_loss = kind.measure == "val_loss"
        expected = [abs(is_loss - figure) for figure in FIGURES.values()]
        assert [row[kind.measure] for row in rows] == expected
        assert whole.run.read_config()["patience"] == 1
    assert any(
        np.any(one != other)
        for one, other in zip(whole.epochs[2], whole.epochs[3], strict=True)
    )


def test_python_and_the_program_give_one_model(whole, monkeypatch, capsys):
    if not whole.kind.preset:
        pytest.skip("only Python has this training")
    flags = ["train", *whole.kind.flags(monkeypatch), "--output=run"]
    assert program.run(flags) == 0
    assert whole.kind.described in capsys.readouterr().out
    check_equal(dssm.load_run("run"), whole.weights)
    assert program.run([*flags, "--resume"]) == 0
    assert "already finished" in capsys.readouterr().out


STOPS = {1: None, 2 * STEPS: 1, 2 * STEPS + 1: 2}
"""Training steps after which a run is stopped, and its best epoch then.

In the first epoch; before the figures of the best epoch, and before negatives
are mined; after the best epoch, and with the mined negatives.
"""


def test_a_stopped_run_ends_as_an_undisturbed_one(whole, tmp_path, figures):
    """From another working folder, also where a model or vectors have gone."""
    kind, run = whole.kind, RunFolder(tmp_path / "run")
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
        assert stopped.optimizer.iterations == step
        # What a user takes from the stopped run: the best epoch's weights, or
        # those of the last step.
        expected = stopped.get_weights()
        if best and kind.measure:
            expected = whole.epochs[best]
        check_equal(run.load_model(), expected)
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
    for name in kind.made_again:
        (run.path / name).unlink()

    for _ in range(2):  # resumed once more, it is finished
        resumed = dssm.resume(run.path, verbose=0)
        check_equal(resumed, whole.weights)
        check_equal(run.load_model(), whole.weights)
        check_equal(state(run), state(whole.run))
        assert figures in ([1, 2, 3], [])
    for name in kind.made_again:
        made = (run.path / name).read_bytes()
        assert made == (whole.run.path / name).read_bytes()
    if kind.measure:
        found, expected = (
            [(row["updates"], row[kind.measure]) for row in each.read_history()]
            for each in (run, whole.run)
        )
        assert found == expected


class Spoil(keras.callbacks.Callback):
    """Fills a weight with NaN after a training step, counted from 1."""

    def __init__(self, step: int) -> None:
        super().__init__()
        self.step = step

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if self.model.optimizer.iterations == self.step:
            weight = self.model.trainable_variables[-1]
            weight.assign(np.full(weight.shape, np.nan, np.float32))


def test_a_loss_that_is_no_number_stops_with_the_texts(whole):
    """The last good state is that of the epoch before."""
    run = RunFolder("run")
    with pytest.raises(FailedTraining) as error:
        whole.kind.train(output="run", callbacks=[Spoil(STEPS + 1)])
    found = re.fullmatch(
        rf"training step {STEPS + 2}: the loss is NaN or infinite; its batch"
        rf" begins with '(.+?)'.*; the last good state is in {run.checkpoint};"
        r" train anew in another --output with a smaller --learning_rate, or"
        r" correct the texts",
        str(error.value),
    )
    assert found
    assert any(
        found[1].encode() in gzip.decompress(path.read_bytes())
        if path.suffix == ".gz"
        else found[1].encode() in path.read_bytes()
        for path in whole.data.rglob("*")
        if path.suffix in (".tsv", ".gz")
    )
    assert all(np.isfinite(value).all() for value in state(run))
    assert run.load_checkpoint().optimizer.iterations == STEPS
    assert [p.name for p in run.checkpoint.parent.iterdir()] == ["last.keras"]
    assert run.model.exists() == bool(whole.kind.measure)


def test_data_that_have_changed_are_not_resumed(whole, tmp_path, monkeypatch):
    data = shutil.copytree(whole.data, tmp_path / "changed")
    monkeypatch.chdir(data)
    config = Path("run/config.json")
    config.write_text(config.read_text().replace(str(whole.data), str(data)))
    dssm.resume("run", verbose=0)
    whole.kind.change()
    with pytest.raises(InputError, match=whole.kind.changed) as error:
        dssm.resume("run", verbose=0)
    assert "\n" not in str(error.value)


def test_data_of_as_many_lines_are_compared(whole, tmp_path, monkeypatch):
    """The digests are those of the files at the start of the run."""
    data = shutil.copytree(whole.data, tmp_path / "changed")
    monkeypatch.chdir(data)
    path = Path("run/config.json")
    text = path.read_text().replace(str(whole.data), str(data))
    path.write_text(text)
    config = json.loads(text)
    assert "data" in config["digests"]
    for name, digest in config["digests"].items():
        changed = {**config["digests"], name: "0" * 64}
        path.write_text(json.dumps({**config, "digests": changed}))
        with pytest.raises(InputError) as error:
            dssm.resume("run", verbose=0)
        assert str(error.value) == (
            f"{config[name]}: found other files of --{name} than those that "
            f"the run was started with (SHA-256 {digest[:12]}, expected "
            "000000000000); restore them, or train anew in another --output"
        )


def test_a_model_is_loaded_by_a_fresh_process(whole, fresh_process):
    code = (
        "import json, sys, keras_lstm_dssm as dssm\n"
        "model = dssm.load_run(sys.argv[1])\n"
        "from tests.kit.kinds import outputs\n"
        "print(json.dumps(outputs(model)))\n"
    )
    found = json.loads(fresh_process(code, whole.run.path)[-1])
    expected = outputs(whole.run.load_model())
    for row, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(row, other, rtol=1e-6, atol=1e-6)
    if whole.kind.recipe.kind != "towers":
        with pytest.raises(InputError, match="found a (pair scorer|KeyVec)"):
            whole.run.load_model("towers")
