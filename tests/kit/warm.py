"""Compiled models that tests use in turn, so that each graph is traced once.

Most of the time of a short training is that of tracing its step. A model that
was lent gets the values back with which it was made, of weights and optimizer,
and the seed that was set when it was made is set again.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import keras
import numpy as np
from tensorflow.python.eager import context

Take = Callable[..., Any]
"""Returns a model: takes the function that makes it, and its arguments."""


class Warm(NamedTuple):
    """A model, what its graphs belong to, and what it began with."""

    model: Any
    optimizer: Any
    trainable: list[bool]
    start: list[np.ndarray]
    seed: int

    @classmethod
    def of(cls, model: Any) -> "Warm":
        """Keeps the values of a new, compiled model."""
        # The velocities exist from now on.
        model.optimizer.build(model.trainable_variables)
        start = [variable.numpy() for variable in state(model)]
        seed = context.global_seed()
        return cls(model, model.optimizer, flags(model), start, seed)

    def is_as_it_was(self) -> bool:
        """Returns whether the model was neither compiled anew nor frozen."""
        return (
            self.model.optimizer is self.optimizer
            and flags(self.model) == self.trainable
        )

    def reset(self) -> Any:
        """Returns the model, with all values of its beginning."""
        for variable, value in zip(state(self.model), self.start, strict=True):
            variable.assign(value)
        self.model.reset_metrics()
        self.model.stop_training = False
        # The order of lists in `fit` depends on it.
        keras.utils.set_random_seed(self.seed)
        return self.model


def state(model: Any) -> list[Any]:
    """Returns the variables that a training changes, but those of metrics.

    Metrics are made by the first training.
    """
    return [*model.weights, *model.optimizer.variables]


def flags(model: Any) -> list[bool]:
    """Returns which layers are trained."""
    return [layer.trainable for layer in model._flatten_layers()]


class WarmModels:
    """Models that are free, by the function and the arguments they are of."""

    def __init__(self) -> None:
        self._free: defaultdict[Any, list[Warm]] = defaultdict(list)

    @contextmanager
    def lent(self) -> Iterator[Take]:
        """Lends models to a test, each to one at a time.

        Those that the test has compiled anew, or whose layers it has frozen,
        are not lent again.
        """
        taken: list[tuple[Any, Warm]] = []

        def take(make: Callable[..., Any], **options: Any) -> Any:
            key = make, tuple(sorted(options.items()))
            free = self._free[key]
            warm = free.pop() if free else Warm.of(make(**options))
            taken.append((key, warm))
            return warm.reset()

        yield take
        for key, warm in taken:
            if warm.is_as_it_was():
                self._free[key].append(warm)
