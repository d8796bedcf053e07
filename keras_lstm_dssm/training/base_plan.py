"""BasePlan: what the plans of both kinds of training have in common."""

from abc import ABC, abstractmethod

import keras

from keras_lstm_dssm.data import ClickLog
from keras_lstm_dssm.models import AnyRecipe


class BasePlan(ABC):
    """Base of `TrainingPlan` and `TriplePlan`: counts the training steps.

    Attributes:
        recipe: Epochs and batch size.
    """

    recipe: AnyRecipe

    @property
    @abstractmethod
    def examples(self) -> int:
        """Number of pairs or triples in an epoch."""

    @property
    def logs(self) -> tuple[ClickLog, ...]:
        """The click logs that are read while training. Default: none."""
        return ()

    @property
    def watches(self) -> list[keras.callbacks.Callback]:
        """Callbacks that stop a hopeless training. Default: none."""
        return []

    @property
    def steps_per_epoch(self) -> int:
        """Training steps in an epoch."""
        return -(-self.examples // self.recipe.batch_size)

    @property
    def total_steps(self) -> int:
        """Training steps in all epochs."""
        return self.recipe.epochs * self.steps_per_epoch
