"""`Checkpoint`: after which epochs a checkpoint is saved."""

from typing import Any

import keras
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm import callbacks
from keras_lstm_dssm.run_folder import RunFolder
from tests.kit.equal import check_equal
from tests.training.small_trainings import QUICK, EpochWeights, StopAt

pytestmark = pytest.mark.usefixtures("kinds_data", "eager")
PLAIN = QUICK.replace(batch_size=12)  # of 24 clicks
MINED = PLAIN.replace(
    negatives="in_batch", hard_negatives=1, mine_every=2, epochs=5
)


class SavedSteps(keras.callbacks.Callback):
    """Lists the training step of the checkpoint in a run after each epoch."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.run = RunFolder(name)
        self.steps: list[int] = []

    def add(self) -> None:
        self.steps.append(int(self.run.load_checkpoint().optimizer.iterations))

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        if epoch:
            self.add()


@pytest.fixture
def slow(monkeypatch) -> None:
    """Makes `Checkpoint` save only where it must, as if saving took long."""
    monkeypatch.setattr(callbacks, "_QUICK", -1)
    monkeypatch.setattr(callbacks, "_MIN_INTERVAL", 1e9)


def train(name: str, recipe: dssm.Recipe, *more: Any) -> tuple[Any, list[int]]:
    saved = SavedSteps(name)
    model = dssm.train(
        "clicks.tsv", recipe, output=name, verbose=0, callbacks=[saved, *more]
    )
    saved.add()
    return model, saved.steps


def test_a_quick_checkpoint_is_saved_after_each_epoch():
    assert train("run", PLAIN)[1] == [2, 4, 6]


def test_a_slow_one_before_mining_and_at_the_end(slow, monkeypatch):
    """Mining replaces negatives that a run resumed from an older one needs.

    Such as one that is killed in epoch 4, whose checkpoint is of epoch 2."""
    whole, steps = train("whole", MINED)
    assert steps == [2, 4, 4, 8, 10]
    killed = RunFolder("killed")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(callbacks.Checkpoint, "on_interrupt", lambda _: None)
        train("killed", MINED, StopAt(7))
    assert len(killed.read_history()) == 3
    assert killed.load_checkpoint().optimizer.iterations == 4
    resumed = dssm.resume(killed.path, verbose=0)
    check_equal(resumed, whole)
    assert [row["epoch"] for row in killed.read_history()] == [1, 2, 3, 4, 5]


class StopAfter(EpochWeights):
    """Ends a training after its second epoch."""

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        super().on_epoch_end(epoch, logs)
        self.model.stop_training = epoch == 1


def test_the_last_one_has_the_weights_of_the_last_epoch(slow, monkeypatch):
    """Not those of the best epoch, which the model then has."""
    monkeypatch.setattr(
        dssm.RankingEvaluation,
        "evaluate",
        lambda self: -int(self.model.optimizer.iterations),
    )
    kept = StopAfter()
    model = dssm.train(
        "clicks.tsv", PLAIN, output="run", dev="judged", verbose=0,
        callbacks=[kept],
    )  # fmt: skip
    check_equal(model, kept.of[1])
    last = RunFolder("run").load_checkpoint()
    assert last.optimizer.iterations == 4
    check_equal(last, kept.of[2])
