"""NesterovSchedule: the paper's momentum over a run, as a callback."""

from typing import Any

import keras

from keras_lstm_dssm.errors import InputError


class NesterovSchedule(keras.callbacks.Callback):
    """Sets mu to 0.9 at the ends of training and 0.995 in between.

    Palangi et al. 2016, section IV: "in the first and last 2% of all
    parameter updates mu = 0.9 and for the other 96% mu = 0.995". The update
    counted is the optimizer's own, which checkpoints hold, so that a resumed
    run goes on where it was.

    Args:
        total_updates: Updates of the whole run, from the optimizer's first
            on. By default the run is this `fit`: epochs times steps from
            where the optimizer is, which needs a dataset of known
            cardinality.
        ends: mu in the first and the last part.
        middle: mu in between.
        fraction: Size of the first and of the last part.

    Raises:
        InputError: The number of updates is neither given nor known, or the
            optimizer has no momentum variable.

    Example:
    >>> model.fit(pairs, epochs=8, callbacks=[NesterovSchedule()])
    """

    def __init__(
        self,
        total_updates: int | None = None,
        ends: float = 0.9,
        middle: float = 0.995,
        fraction: float = 0.02,
    ) -> None:
        super().__init__()
        self.total_updates = total_updates
        self.ends = ends
        self.middle = middle
        self.fraction = fraction
        self._first = self._total = 0

    def momentum(self, update: int, total: int) -> float:
        """Returns mu of an update, counted from 0, among `total`."""
        edge = self.fraction * total
        inside = edge <= update < total - edge
        return self.middle if inside else self.ends

    def on_train_begin(self, logs: Any = None) -> None:
        """Finds out how many updates there will be."""
        momentum = getattr(self.model.optimizer, "momentum", None)
        if not isinstance(momentum, keras.Variable):
            raise InputError(
                "NesterovSchedule needs an optimizer whose momentum is a "
                "variable, such as NesterovMomentum; the model has "
                f"{type(self.model.optimizer).__name__}"
            )
        if self.model.steps_per_execution != 1:
            raise InputError(
                "NesterovSchedule sets the momentum of each update and needs "
                "steps_per_execution=1, not "
                f"{self.model.steps_per_execution}"
            )
        steps = self.params.get("steps")
        if self.total_updates is None and steps is None:
            raise InputError(
                "NesterovSchedule: the dataset's cardinality is unknown; "
                "give total_updates (epochs times steps)"
            )
        if self.total_updates is not None:
            self._first, self._total = 0, self.total_updates
        else:
            self._first = int(self.model.optimizer.iterations.numpy())
            self._total = self.params["epochs"] * steps

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Sets mu for the coming update."""
        optimizer = self.model.optimizer
        update = int(optimizer.iterations.numpy()) - self._first
        optimizer.momentum.assign(self.momentum(update, self._total))
