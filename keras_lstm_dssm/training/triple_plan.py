"""TriplePlan: the triples that a pair scorer is trained on, and their order."""

from dataclasses import dataclass

import keras
import tensorflow as tf

from keras_lstm_dssm.data import ClickLog, Triples
from keras_lstm_dssm.models import ScorerRecipe
from keras_lstm_dssm.training.base_plan import BasePlan
from keras_lstm_dssm.training.dead_network import DeadNetworkWatch


@dataclass(frozen=True)
class TriplePlan(BasePlan):
    """Describes the data that a pair scorer is trained on, and their order.

    The counterpart of `TrainingPlan`.

    Attributes:
        triples: The triples to train on.
        recipe: Epochs and batch size.
        seed: Seed of the order of the triples.
        log: The click log that the triples were mined from, or `None`.

    Example:
    >>> triples = Triples([("hex bolt", ["steel hex bolt"], ["wood glue"])])
    >>> plan = TriplePlan(triples, dssm.SCORER_PRESETS["mv_lstm_tensor"])
    >>> plan.examples, plan.steps_per_epoch
    (1, 1)
    """

    triples: Triples
    recipe: ScorerRecipe
    seed: int = 0
    log: ClickLog | None = None

    examples_name = "triples"

    @property
    def examples(self) -> int:
        """Triples in an epoch."""
        return len(self.triples)

    @property
    def watches(self) -> list[keras.callbacks.Callback]:
        """Callbacks that stop a training which cannot succeed any more."""
        return [DeadNetworkWatch(self.recipe.margin, self.steps_per_epoch)]

    def batches(self, first: int) -> tf.data.Dataset:
        """Returns the batches from training step `first` on."""
        return self.triples.batches(
            self.recipe.batch_size,
            epochs=self.recipe.epochs,
            seed=self.seed,
            first_step=first,
        )

    def describe(self) -> str:
        """Describes the amount of data."""
        return self.triples.describe()
