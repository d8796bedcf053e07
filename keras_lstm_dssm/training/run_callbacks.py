"""Callbacks that keep a run's files up to date while it trains."""

import csv
import time
from typing import Any

import keras

from keras_lstm_dssm.files import replacing
from keras_lstm_dssm.training.faults import check_finite
from keras_lstm_dssm.training.run_folder import RunFolder


class Checkpoint(keras.callbacks.Callback):
    """Saves model and optimizer, to resume from.

    After each epoch, and within one when the last time is long ago. The old
    checkpoint is there until the new one is whole, and stays when the new
    one would hold a NaN.

    Args:
        run: The run's folder.
        minutes: How long is long ago.

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
        """Replaces the checkpoint when it is time to."""
        if time.monotonic() - self._saved > 60 * self.minutes:
            self._save()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Replaces the checkpoint."""
        self._save()

    def on_interrupt(self) -> None:
        """Keeps the updates since; `TwoTower.fit` calls this on ctrl-c."""
        self._save()

    def _save(self) -> None:
        check_finite(self.model)
        # As it is: rows that are behind are resumed as rows that are behind.
        with replacing(self.run.checkpoint) as partial:
            keras.saving.save_model(self.model, partial)
        self._saved = time.monotonic()


class HistoryFile(keras.callbacks.Callback):
    """Writes each epoch's figures to `history.csv`.

    A resumed run keeps the rows of the epochs that it does not repeat.
    """

    def __init__(self, run: RunFolder, initial_epoch: int = 0) -> None:
        super().__init__()
        self.run = run
        self.rows = [
            row for row in run.read_history() if row["epoch"] <= initial_epoch
        ]

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Adds a row: epoch (from 1), update, losses and accuracies."""
        updates = int(self.model.optimizer.iterations.numpy())
        self.rows.append({"epoch": epoch + 1, "updates": updates, **logs})
        with (
            replacing(self.run.history) as partial,
            partial.open("w", newline="", encoding="utf-8") as file,
        ):
            names = list(dict.fromkeys(n for row in self.rows for n in row))
            writer = csv.DictWriter(file, names)
            writer.writeheader()
            writer.writerows(self.rows)
