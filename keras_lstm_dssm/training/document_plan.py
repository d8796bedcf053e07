"""DocumentPlan: the documents that a KeyVec is trained on, and their order."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import tensorflow as tf

from keras_lstm_dssm.models import KeyVecRecipe
from keras_lstm_dssm.training.base_plan import BasePlan
from keras_lstm_dssm.training.document_examples import DocumentExamples
from keras_lstm_dssm.training.salience import SalienceCounts


@dataclass(frozen=True)
class DocumentPlan(BasePlan):
    """Describes the documents that a `KeyVec` is trained on, and their order.

    The counterpart of `TrainingPlan`.

    Attributes:
        documents: The documents with their targets.
        recipe: Epochs, batch size and excerpts.
        seed: Seed of the order of the documents.
        counts: How many of their sentences are salient.
        left_out: What is wrong -> number of lines that are left out.
    """

    documents: DocumentExamples
    recipe: KeyVecRecipe
    seed: int
    counts: SalienceCounts
    left_out: Mapping[str, int] = field(default_factory=dict)

    log = None
    examples_name = "documents"

    @property
    def examples(self) -> int:
        """Documents in an epoch."""
        return len(self.documents)

    @property
    def bad_lines(self) -> Mapping[str, int]:
        """What is wrong -> number of lines of the data that are left out."""
        return self.left_out

    def batches(self, first: int) -> tf.data.Dataset:
        """Returns the batches from training step `first` on."""
        return self.documents.batches(
            self.recipe.batch_size,
            epochs=self.recipe.epochs,
            seed=self.seed,
            first_step=first,
            excerpt=self.recipe.excerpt,
        )

    def describe(self) -> str:
        """Returns a line for users about the documents to train on.

        It states how many there are, and how many of their sentences the
        model is to find.
        """
        return f"{self.examples:,} documents; {self.counts.describe()}"
