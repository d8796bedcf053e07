"""`NesterovSchedule`, the momentum of each training step."""

import math
from collections.abc import Sequence
from typing import Any

import keras

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.optimizers.nesterov_momentum import NesterovMomentum


class NesterovSchedule(keras.callbacks.Callback):
    """Sets mu to 0.9 at both ends of the training and to 0.995 in between.

    Palangi et al. 2016, section IV: "in the first and last 2% of all
    parameter updates mu = 0.9 and for the other 96% mu = 0.995". Updates are
    counted by `optimizer.iterations`, which checkpoints hold, so that a
    resumed run continues the schedule. `NesterovMomentum` computes mu inside
    each training step; `steps_per_execution` changes nothing.

    Each epoch's logs get `momentum`, mu of its last step. Outside of training
    steps the model holds the weights W of Algorithm 1, not the look-ahead
    point: in other callbacks, wherever they are listed, in the validation of
    `fit`, in what they save, and after an exception.

    `keras.optimizers.SGD` reads its momentum when a training step is traced.
    It works only with `compile(run_eagerly=True)`.

    Args:
        total_steps: Number of training steps from the optimizer's first
            step on. By default the schedule spans this `fit`, from its
            `initial_epoch` to its last epoch, which needs a dataset of known
            cardinality; but a training that was interrupted, and is resumed
            by `keras.callbacks.BackupAndRestore`, goes on with its schedule.
        ends: mu in the first and in the last part. Default 0.9.
        middle: mu in between. Default 0.995.
        fraction: Share of the training steps in the first part, and also in
            the last part. Default 0.02.

    Raises:
        InputError: The number of training steps is neither given nor known,
            or the momentum of the optimizer cannot be changed.

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
        self._phases: Sequence[int] | None = None

    def momentum(self, step: int, total: int) -> float:
        """Returns mu of a training step, counted from 0, among `total`."""
        return self._momentum_at(step, self._phases_of(0, total))

    def _phases_of(self, start: int, total: int) -> Sequence[int]:
        """Returns the first step of the middle, its end, and the last end."""
        edge = self.fraction * total
        middle = math.ceil(edge), math.ceil(total - edge)
        return [start + step for step in (*middle, total)]

    def on_train_begin(self, logs: Any = None) -> None:
        """Checks that the momentum can be set and the steps are known."""
        self._phases = None
        optimizer, model = self._optimizer(), self.model
        if isinstance(optimizer, NesterovMomentum):
            model.train_function = optimizer.from_weights(
                model.train_function,
                model.steps_per_execution,
                model.run_eagerly,
            )
        elif not (
            isinstance(optimizer, keras.optimizers.SGD)
            and optimizer.momentum
            and model.run_eagerly
            and model.steps_per_execution == 1
        ):
            raise InputError(
                "NesterovSchedule cannot change the momentum of "
                f"{type(optimizer).__name__} in a training step: compile with "
                "NesterovMomentum, or with SGD, momentum=0.9, "
                "run_eagerly=True and steps_per_execution=1"
            )
        if self.total_steps is None and self.params.get("steps") is None:
            raise InputError(
                "NesterovSchedule: the dataset's cardinality is unknown; "
                "give total_steps (epochs times steps)"
            )

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Sets the momentum of all steps before the first epoch.

        Not in `on_train_begin`, where other callbacks load checkpoints.
        """
        if self._phases is not None:
            return
        optimizer = self._optimizer()
        stored = [0, 0, 0]
        if isinstance(optimizer, NesterovMomentum):
            stored = optimizer.phases.numpy().tolist()
        if self.total_steps is not None:
            self._phases = self._phases_of(0, self.total_steps)
        else:
            done, steps = self._done(), self.params["steps"]
            total = steps * (self.params["epochs"] - epoch)
            total //= optimizer.gradient_accumulation_steps or 1
            # An interrupted training; part of an epoch may be repeated.
            goes_on = done < stored[2] <= done + total < stored[2] + steps
            self._phases = stored if goes_on else self._phases_of(done, total)
        if isinstance(optimizer, NesterovMomentum):
            optimizer.set_phases(self.ends, self.middle, self._phases)

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Sets `SGD.momentum` for the next step, which runs eagerly."""
        optimizer = self._optimizer()
        if isinstance(optimizer, keras.optimizers.SGD):
            optimizer.momentum = self._momentum_at(self._done(), self._phases)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Adds mu of the last training step to the logs."""
        if logs is not None:
            logs["momentum"] = self._momentum_at(self._done() - 1, self._phases)

    def _momentum_at(self, step: int, phases: Sequence[int] | None) -> float:
        assert phases is not None  # on_epoch_begin has set them
        first, end, _ = phases
        return self.middle if first <= step < end else self.ends

    def _done(self) -> int:
        """Returns the number of updates that the optimizer has made."""
        return int(self._optimizer().iterations.numpy())

    def _optimizer(self) -> Any:
        """Returns the optimizer, without `LossScaleOptimizer` around it."""
        optimizer = self.model.optimizer
        return getattr(optimizer, "inner_optimizer", optimizer)
