"""BaseTraining: what the trainings of all kinds of models have in common."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from keras_lstm_dssm.data import ClickLog
from keras_lstm_dssm.models import AnyRecipe
from keras_lstm_dssm.training.base_plan import BasePlan
from keras_lstm_dssm.training.best_epoch import BestEpoch
from keras_lstm_dssm.training.parent import Parent
from keras_lstm_dssm.training.training_data import TrainingData


class BaseTraining(ABC):
    """Base of the trainings: makes the model and the plan.

    A subclass is a frozen dataclass. Its class method `open` takes the recipe,
    the seed, the run folder and `DataOptions`.

    Attributes:
        recipe: The recipe.
        seed: Seed of the weights and of all random draws.
        spec: Data specification from which the data can be opened again.
        log: The click log that is learnt from; `None` for other data.
    """

    recipe: AnyRecipe
    seed: int
    spec: str
    log: ClickLog | None

    @abstractmethod
    def new_model(self, parent: Parent | None = None) -> Any:
        """Builds and compiles the model.

        Args:
            parent: The trained model whose weights, adapted statistics and
                words it takes; `None` for random weights.

        Raises:
            InputError: The parent is not of the recipe's network.
        """

    @abstractmethod
    def plan(self, folder: Path, model: Any, resumed: bool = False) -> BasePlan:
        """Makes the plan.

        Args:
            folder: The folder of the run, for the files of the plan.
            model: The model.
            resumed: Whether to use files that the run has written.
        """

    @abstractmethod
    def warn(self, model: Any) -> None:
        """Prints warnings about the data to standard error."""

    @property
    def max_bad_lines(self) -> int:
        """Number of bad lines of the data that may be left out."""
        return self.log.max_bad_lines if self.log else 0

    def best_epoch(self, data: TrainingData, dev: Any) -> BestEpoch | None:
        """Returns the callback that chooses the best epoch, or `None`.

        Args:
            data: The settings of the run.
            dev: The `Task` or `ClusterTask` that `train` was given as `dev`;
                `None` for that of `data`.
        """
        return data.ranking(self.recipe, dev)
