"""Callbacks that keep a run's files up to date while it trains."""

import csv
from typing import Any

import keras

from keras_lstm_dssm.files import replacing
from keras_lstm_dssm.training.run_folder import RunFolder


class Checkpoint(keras.callbacks.Callback):
    """Saves model and optimizer after each epoch, to resume from."""

    def __init__(self, run: RunFolder) -> None:
        super().__init__()
        self.run = run

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Replaces the run's checkpoint."""
        self.run.save(self.model, self.run.checkpoint)


class HistoryFile(keras.callbacks.Callback):
    """Writes each epoch's figures to `history.csv`.

    A resumed run keeps the rows of the epochs that it does not repeat.
    """

    def __init__(self, run: RunFolder, initial_epoch: int = 0) -> None:
        super().__init__()
        self.run = run
        self.rows: list[dict[str, Any]] = []
        if run.history.exists():
            with run.history.open(newline="") as file:
                self.rows = [
                    row
                    for row in csv.DictReader(file)
                    if int(row["epoch"]) <= initial_epoch
                ]

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Adds a row: epoch (from 1), update, losses and accuracies."""
        updates = int(self.model.optimizer.iterations.numpy())
        self.rows.append({"epoch": epoch + 1, "updates": updates, **logs})
        with (
            replacing(self.run.history) as partial,
            partial.open("w", newline="") as file,
        ):
            names = list(dict.fromkeys(n for row in self.rows for n in row))
            writer = csv.DictWriter(file, names)
            writer.writeheader()
            writer.writerows(self.rows)
