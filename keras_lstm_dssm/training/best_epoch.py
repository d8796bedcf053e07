"""BestEpoch: keeps the weights of the best epoch, and stops early."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from keras_lstm_dssm.errors import InputError


class BestEpoch(keras.callbacks.Callback):
    """Measures a model after epochs, keeps the best weights, stops early.

    Base of `RankingEvaluation` and `ValidationLoss`. A subclass has `name`
    and defines `figures`, and may define `is_better`. The figures are added
    to the epoch's logs, so that they appear in the progress bar, in the
    history and in TensorBoard. List this callback before others that read
    the logs.

    Args:
        every: Measure every n epochs, and after the last one. Default 1.
        keep_best: Whether the weights of the best epoch replace those of the
            last one when the training ends. Default `True`.
        patience: Number of evaluations without a better figure after which
            the training stops; `None`, the default, never stops it.

    Attributes:
        best: The best figure so far; `None` before the first.
        best_epoch: The epoch of that figure, counted from 1.
        best_weights: The weights of that epoch, if they are kept.
        on_best: Function that is called with the model when its weights are
            the best so far; `None`, the default, for no function.

    Raises:
        InputError: A number is below 1.
    """

    def __init__(
        self,
        every: int = 1,
        keep_best: bool = True,
        patience: int | None = None,
    ) -> None:
        super().__init__()
        for name, value in (("every", every), ("patience", patience)):
            if value is not None and value < 1:
                raise InputError(f"{name} is {value}: expected 1 or more")
        self.every = every
        self.keep_best = keep_best
        self.patience = patience
        self.best: float | None = None
        self.best_epoch = 0
        self.evaluations_since_best = 0
        self.best_weights: list[np.ndarray] | None = None
        self.on_best: Callable[[Any], None] | None = None

    @property
    def name(self) -> str:
        """Name in the logs of the figure that decides which epoch is best."""
        raise NotImplementedError(f"{type(self).__name__}.name")

    def figures(self) -> dict[str, float]:
        """Measures the model with its current weights.

        Returns:
            Name in the logs -> figure, among them that of `name`.
        """
        raise NotImplementedError(f"{type(self).__name__}.figures")

    def is_better(self, figure: float, best: float) -> bool:
        """Returns whether a figure is better than the best one so far."""
        return figure > best

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Measures the model, if that is due after this epoch."""
        if not self.is_due(epoch + 1, self.params["epochs"]):
            return
        figures = self.figures()
        if logs is not None:
            logs.update(figures)
        self.count(epoch + 1, figures[self.name])
        if self.best_epoch == epoch + 1 and self.keep_best:
            self.keep()
        if self.should_stop:
            self.model.stop_training = True

    def is_due(self, epoch: int, epochs: int) -> bool:
        """Returns whether to measure after an epoch, counted from 1."""
        return epoch % self.every == 0 or epoch == epochs

    def count(self, epoch: int, figure: float) -> None:
        """Records the figure of an epoch, counted from 1."""
        if self.best is None or self.is_better(figure, self.best):
            self.best, self.best_epoch = figure, epoch
            self.evaluations_since_best = 0
        else:
            self.evaluations_since_best += 1

    @property
    def should_stop(self) -> bool:
        """Whether the last `patience` evaluations gave no better figure."""
        return (
            self.patience is not None
            and self.evaluations_since_best >= self.patience
        )

    def keep(self) -> None:
        """Keeps the weights as those of the best epoch."""
        self.best_weights = self.model.get_weights()
        if self.on_best is not None:
            self.on_best(self.model)

    def on_train_end(self, logs: Any = None) -> None:
        """Restores the best weights."""
        if self.best_weights is not None:
            self.model.set_weights(self.best_weights)
