"""NesterovSchedule: the paper's momentum over a run, as a callback."""

from typing import Any

import keras

from keras_lstm_dssm.errors import InputError


class NesterovSchedule(keras.callbacks.Callback):
    """Sets mu to 0.9 at both ends of the training and to 0.995 in between.

    Palangi et al. 2016, section IV: "in the first and last 2% of all
    parameter updates mu = 0.9 and for the other 96% mu = 0.995". Training
    steps are counted by `optimizer.iterations`, which checkpoints hold, so
    that a resumed run continues the schedule.

    Args:
        total_steps: Number of training steps from the optimizer's first
            one on. By default the schedule spans this `fit`, from its
            `initial_epoch` to its last epoch, which needs a dataset of known
            cardinality.
        ends: mu in the first and in the last part. Default 0.9.
        middle: mu in between. Default 0.995.
        fraction: Share of the training steps in the first part, and also in
            the last part. Default 0.02.

    Raises:
        InputError: The number of training steps is neither given nor known,
            `steps_per_execution` is not 1, or the optimizer has no momentum
            variable.

    Example:
    >>> model.fit(pairs, epochs=8, callbacks=[NesterovSchedule()])
    """

    def __init__(
        self,
        total_steps: int | None = None,
        ends: float = 0.9,
        middle: float = 0.995,
        fraction: float = 0.02,
    ) -> None:
        super().__init__()
        self.total_steps = total_steps
        self.ends = ends
        self.middle = middle
        self.fraction = fraction
        self._first = 0
        self._total: int | None = None

    def momentum(self, step: int, total: int) -> float:
        """Returns mu of a training step, counted from 0, among `total`."""
        edge = self.fraction * total
        inside = edge <= step < total - edge
        return self.middle if inside else self.ends

    def on_train_begin(self, logs: Any = None) -> None:
        """Checks that optimizer and dataset support the schedule."""
        momentum = getattr(self.model.optimizer, "momentum", None)
        if not isinstance(momentum, keras.Variable):
            raise InputError(
                "NesterovSchedule needs an optimizer whose momentum is a "
                "variable, such as NesterovMomentum; the model has "
                f"{type(self.model.optimizer).__name__}"
            )
        if self.model.steps_per_execution != 1:
            raise InputError(
                "NesterovSchedule sets the momentum of each training step and "
                "needs steps_per_execution=1, not "
                f"{self.model.steps_per_execution}"
            )
        if self.total_steps is None and self.params.get("steps") is None:
            raise InputError(
                "NesterovSchedule: the dataset's cardinality is unknown; "
                "give total_steps (epochs times steps)"
            )
        self._first, self._total = 0, self.total_steps

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Computes the number of training steps, in the first epoch."""
        if self._total is None:
            self._first = int(self.model.optimizer.iterations.numpy())
            epochs = self.params["epochs"] - epoch
            self._total = epochs * self.params["steps"]

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Sets mu for the coming training step."""
        assert self._total is not None  # on_epoch_begin has set it
        optimizer = self.model.optimizer
        step = int(optimizer.iterations.numpy()) - self._first
        optimizer.momentum.assign(self.momentum(step, self._total))
