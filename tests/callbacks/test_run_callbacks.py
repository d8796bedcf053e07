"""`Checkpoint`: after which epochs a checkpoint is saved."""

import pathlib
from typing import Any

import keras
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.callbacks import checkpoint as checkpoint_module
from keras_lstm_dssm.run_folder import RunFolder
from tests.training.small_trainings import QUICK, StopAt, check_equal

STEPS = 8  # 120 clicks in batches of 16
MINED = QUICK.replace(
    negatives="in_batch", hard_negatives=1, mine_every=2, epochs=5
)


class SavedSteps(keras.callbacks.Callback):
    """Lists the training steps whose checkpoint is in the folder."""

    def __init__(self, path: pathlib.Path) -> None:
        super().__init__()
        self.run = RunFolder(path)
        self.steps: list[int] = []

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        optimizer = self.run.load_checkpoint().optimizer
        self.steps.append(int(optimizer.iterations.numpy()))


@pytest.fixture
def slow(monkeypatch) -> None:
    """Makes `Checkpoint` save only where it must, as if saving took long."""
    monkeypatch.setattr(checkpoint_module, "_QUICK", -1)
    monkeypatch.setattr(checkpoint_module, "_RARELY", 1e9)


def train(
    collection: pathlib.Path,
    path: pathlib.Path,
    recipe: dssm.Recipe,
    *more: Any,
) -> tuple[dssm.TwoTower, list[int]]:
    saved = SavedSteps(path)
    model = dssm.train(
        collection, recipe, output=path, verbose=0, callbacks=[saved, *more]
    )
    return model, saved.steps


def test_a_quick_checkpoint_is_saved_after_each_epoch(
    collection_folder, tmp_path
):
    _, steps = train(collection_folder, tmp_path, QUICK)
    assert steps == [STEPS, 2 * STEPS, 3 * STEPS]


@pytest.mark.usefixtures("slow")
def test_a_slow_one_before_mining_and_at_the_end(collection_folder, tmp_path):
    """A checkpoint is saved before mining, even if saving takes long.

    Mining replaces the file of mined negatives, which a run that is resumed
    from an older checkpoint would need.
    """
    _, steps = train(collection_folder, tmp_path, MINED)
    assert steps == [STEPS * epoch for epoch in (1, 2, 2, 4, 4)]
    last = RunFolder(tmp_path).load_checkpoint()
    assert int(last.optimizer.iterations.numpy()) == 5 * STEPS


@pytest.mark.usefixtures("slow")
def test_a_run_is_resumed_from_an_older_epoch(
    collection_folder, tmp_path, monkeypatch
):
    """A run is killed in epoch 4; its last checkpoint is of epoch 2."""
    whole, _ = train(collection_folder, tmp_path / "whole", MINED)
    killed = tmp_path / "killed"
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(
            checkpoint_module.Checkpoint, "on_interrupt", lambda _: None
        )
        train(collection_folder, killed, MINED, StopAt(3 * STEPS + 2))
    assert len(RunFolder(killed).read_history()) == 3
    checkpoint = RunFolder(killed).load_checkpoint()
    assert int(checkpoint.optimizer.iterations.numpy()) == 2 * STEPS
    resumed = dssm.resume(killed, verbose=0)
    check_equal(resumed.get_weights(), whole.get_weights())
    epochs = [row["epoch"] for row in RunFolder(killed).read_history()]
    assert epochs == [1, 2, 3, 4, 5]
