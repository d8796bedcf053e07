"""BasePlan: what the plans of all kinds of training have in common."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.data import ClickLog
from keras_lstm_dssm.models import AnyRecipe


class BasePlan(ABC):
    """Base of the plans: the examples, their order, and the training steps.

    Attributes:
        recipe: Epochs and batch size.
        log: The click log of the examples; `None` if they are no clicks.
    """

    recipe: AnyRecipe
    log: ClickLog | None

    examples_name = "pairs"
    """What the examples are called in messages."""

    @property
    @abstractmethod
    def examples(self) -> int:
        """Number of pairs, triples or documents in an epoch."""

    @abstractmethod
    def batches(self, first: int) -> tf.data.Dataset:
        """Returns the batches from training step `first` on."""

    def batches_of_a_fit(
        self, first: int, model: Any
    ) -> tuple[tf.data.Dataset, int]:
        """Returns the batches for one call of `fit`, and where it ends.

        Args:
            first: Training step of the first batch.
            model: The model at this training step.

        Returns:
            The batches, and the last epoch, counted from 1, for which they
            are valid. Default: the last epoch of the recipe.
        """
        return self.batches(first), self.recipe.epochs

    def needs_checkpoint(self, epochs: int) -> bool:
        """Returns whether a checkpoint must be saved after some epochs.

        It must if the next epoch overwrites a file that a resume from an older
        checkpoint would need.

        Args:
            epochs: Number of complete epochs.
        """
        return False

    @abstractmethod
    def describe(self) -> str:
        """Describes the amount of data in one line."""

    @property
    def bad_lines(self) -> Mapping[str, int]:
        """What is wrong -> number of lines of the data that are left out."""
        return self.log.bad_lines() if self.log else {}

    @property
    def logs(self) -> tuple[ClickLog, ...]:
        """The click logs that are read while training. Default: none."""
        return ()

    @property
    def watches(self) -> list[keras.callbacks.Callback]:
        """Callbacks for a training that cannot succeed. Default: none."""
        return []

    @property
    def steps_per_epoch(self) -> int:
        """Training steps in an epoch."""
        return -(-self.examples // self.recipe.batch_size)

    @property
    def total_steps(self) -> int:
        """Training steps in all epochs."""
        return self.recipe.epochs * self.steps_per_epoch
