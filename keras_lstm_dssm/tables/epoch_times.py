"""EpochTimes: the loss, the dev measure and the duration of each epoch."""

import time
from typing import Any

import keras


class EpochTimes(keras.callbacks.Callback):
    """Records the logs and the seconds of training of each epoch.

    Attributes:
        history: A row for each epoch: `epoch`, counted from 1; the logs;
            `dev`, the measure on dev, or `None` where it was not evaluated;
            and `seconds`, without those of the evaluation.
    """

    def __init__(self) -> None:
        super().__init__()
        self.history: list[dict[str, Any]] = []

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Notes the time."""
        self.start = time.perf_counter()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Notes the time, which stays that before the evaluation on dev."""
        self.end = time.perf_counter()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Adds the row of the epoch."""
        row = dict(logs or {})
        names = [name for name in row if name.startswith("dev_")]
        dev = row.pop(names[0]) if names else None
        seconds = self.end - self.start
        self.history.append(
            {"epoch": epoch + 1, **row, "dev": dev, "seconds": seconds}
        )

    @property
    def results(self) -> dict[str, Any]:
        """The arguments of `TrainedSystem` that follow from the history.

        The best epoch is the first of those with the highest value on dev.
        """
        measured = [row for row in self.history if row["dev"] is not None]
        best = max(measured, key=lambda row: row["dev"])
        return {
            "dev": best["dev"],
            "best_epoch": best["epoch"],
            "train_seconds": sum(row["seconds"] for row in self.history),
            "history": tuple(self.history),
        }


def parameters(variables: list[keras.Variable]) -> int:
    """Returns the number of parameters in variables."""
    return sum(int(keras.ops.size(v)) for v in variables)
