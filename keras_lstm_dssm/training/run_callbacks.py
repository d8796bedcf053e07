"""Callbacks that write the files of a run folder while it is trained."""

import time
from contextlib import nullcontext
from typing import Any

import keras

from keras_lstm_dssm.files import replacing, write_csv
from keras_lstm_dssm.training.faults import check_finite
from keras_lstm_dssm.training.run_folder import RunFolder


class Checkpoint(keras.callbacks.Callback):
    """Saves model and optimizer, so that a run can be resumed.

    A checkpoint is saved after each epoch, and within an epoch when the last
    one is older than `minutes`. It replaces the old one when it is complete,
    and only if all its numbers are finite.

    Args:
        run: The run's folder.
        minutes: Age of the last checkpoint after which one is saved within
            an epoch.

    Raises:
        Diverged: The weights are not finite.
        OSError: The checkpoint cannot be written.
    """

    def __init__(self, run: RunFolder, minutes: float) -> None:
        super().__init__()
        self.run = run
        self.minutes = minutes
        self._saved = time.monotonic()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Saves a checkpoint when the last one is too old."""
        if time.monotonic() - self._saved > 60 * self.minutes:
            self._save()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Saves a checkpoint."""
        self._save()

    def on_interrupt(self) -> None:
        """Saves a checkpoint; `TwoTower.fit` calls this on ctrl-c."""
        self._save()

    def _save(self) -> None:
        check_finite(self.model)
        optimizer = self.model.optimizer
        with (
            getattr(optimizer, "pending_rows_saved", nullcontext)(),
            replacing(self.run.checkpoint) as partial,
        ):
            keras.saving.save_model(self.model, partial)
        self._saved = time.monotonic()


class HistoryFile(keras.callbacks.Callback):
    """Writes the figures of each epoch to `history.csv`.

    A resumed run keeps the rows of the epochs that it does not repeat.

    Args:
        run: The run's folder.
        initial_epoch: Number of complete epochs.
    """

    def __init__(self, run: RunFolder, initial_epoch: int = 0) -> None:
        super().__init__()
        self.run = run
        self.rows = [
            row for row in run.read_history() if row["epoch"] <= initial_epoch
        ]

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Adds a row: epoch (from 1), training steps, losses, accuracies."""
        updates = int(self.model.optimizer.iterations.numpy())
        self.rows.append({"epoch": epoch + 1, "updates": updates, **logs})
        write_csv(self.run.history, self.rows)
