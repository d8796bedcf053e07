"""Callbacks that write the files of a run folder while it is trained."""

import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import keras

from keras_lstm_dssm.callbacks.failures import check_finite
from keras_lstm_dssm.files import replacing, write_csv
from keras_lstm_dssm.run_folder import RunFolder

_QUICK = 0.5
"""Seconds of saving below which a checkpoint is saved after each epoch."""

_RARELY = 50
"""Least time between two checkpoints, in multiples of the time of saving."""


class Checkpoint(keras.callbacks.Callback):
    """Saves model and optimizer, so that a run can be resumed.

    It does so after each epoch (but see `on_epoch_end`), and within one if the
    last checkpoint is older than `minutes`. All numbers must be finite.
    """

    def __init__(
        self, run: RunFolder, minutes: float, needed: Callable[[int], bool]
    ) -> None:
        super().__init__()
        self.run = run
        self.minutes = minutes
        self.needed = needed
        self._saved = time.monotonic()
        self._seconds = 0.0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Saves a checkpoint when the last one is too old."""
        if time.monotonic() - self._saved > 60 * self.minutes:
            self._save()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Saves a checkpoint, unless saving is slow and the last one is new.

        If it takes over half a second, it takes at most a fiftieth of the
        training, but for epochs for which `needed(epochs)` is true, and for the
        last one: later, the weights may be those of the best epoch.
        """
        if (
            self._seconds < _QUICK
            or time.monotonic() - self._saved > _RARELY * self._seconds
            or self.needed(epoch + 1)
            or self.model.stop_training
            or epoch + 1 == self.params["epochs"]
        ):
            self._save()

    def on_interrupt(self) -> None:
        """Saves a checkpoint; `TwoTower.fit` calls this on ctrl-c."""
        self._save()

    def _save(self) -> None:
        started = time.monotonic()
        check_finite(self.model)
        optimizer = self.model.optimizer
        with (
            getattr(optimizer, "pending_rows_saved", nullcontext)(),
            replacing(self.run.checkpoint) as partial,
        ):
            keras.saving.save_model(self.model, partial)
        self._saved = time.monotonic()
        self._seconds = self._saved - started


class HistoryFile(keras.callbacks.Callback):
    """Writes the metrics of each epoch to `history.csv`.

    A resumed run keeps the rows of the `initial_epoch` complete epochs.
    """

    def __init__(self, run: RunFolder, initial_epoch: int) -> None:
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
