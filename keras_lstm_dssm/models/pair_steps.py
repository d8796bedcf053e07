"""PairSteps: training steps of two towers, whose tables follow lazily."""

from typing import Any

import tensorflow as tf

from keras_lstm_dssm.encoders import TextEncoder
from keras_lstm_dssm.layers.synced_weights import SyncedWeights
from keras_lstm_dssm.models.hashed_model import HashedModel
from keras_lstm_dssm.models.pairs import HashedPairs, PairHasher
from keras_lstm_dssm.private_api import replica_count


class PairSteps(SyncedWeights, HashedModel):
    """Compiles a model of pairs of texts, and takes its training steps.

    A subclass has `towers`, the encoders whose gradients are renormalised
    separately; `call`, which scores pairs; and `batch_loss`.

    Args:
        hasher: `PairHasher` that turns batches of texts into the input of a
            training step.
        **kwargs: Arguments of `keras.Model`.
    """

    rankings_hint = "measure rankings with dssm.RankingEvaluation"
    export_hint = (
        "keras_lstm_dssm.export.export_models(model, folder), which writes "
        "both encoders as SavedModels"
    )

    def __init__(self, hasher: PairHasher, **kwargs: Any) -> None:
        super().__init__(hasher, HashedPairs, **kwargs)

    @property
    def towers(self) -> list[TextEncoder]:
        """The distinct encoders, the query's first."""
        raise NotImplementedError(f"{type(self).__name__} has no towers")

    def compile(
        self,
        optimizer: Any,
        loss: Any,
        jit_compile: bool = False,
        **kwargs: Any,
    ) -> None:
        """Sets optimizer and loss; each tower's gradients form a group.

        Args:
            optimizer: `NesterovMomentum`, or any Keras optimizer.
            loss: `CosineSoftmax`.
            jit_compile: Must be `False`: XLA has no string operations.
            **kwargs: See `keras.Model.compile`; loss and accuracy are the
                only metrics.

        Raises:
            InputError: Metrics, XLA or mixed precision are requested.
        """
        self.sync_weights()  # pending updates of the previous optimizer
        super().compile(optimizer, loss, jit_compile=jit_compile, **kwargs)
        if hasattr(self.optimizer, "set_groups"):
            self.optimizer.set_groups(
                [tower.trainable_variables for tower in self.towers]
            )
        # Replicas read different rows, so that their update stays dense.
        if getattr(self.optimizer, "lazy", False) and replica_count(self) == 1:
            self.optimizer.set_tables(
                [table for tower in self.towers for table in tower.tables]
            )
        for tower in self.towers:
            for layer in (tower, *tower.embeddings):
                layer.before_read = getattr(self.optimizer, "sync", None)

    def predict_step(self, data: tuple[Any, Any]) -> tf.Tensor:
        """Returns the cosines of a batch of pairs."""
        pairs = self._batch(data)
        return self((pairs.query, pairs.document))

    def sync_weights(self) -> None:
        """Brings the trigram tables up to date with the last training step.

        Rarely needs to be called directly; see `PairModel`.
        """
        for tower in self.towers:
            tower.sync_weights()

    def _before_gradient(self, batch: HashedPairs) -> None:
        """Moves the weights to the look-ahead point of Algorithm 1."""
        if not hasattr(self.optimizer, "look_ahead"):
            return
        # Tied towers are one, and read the rows of `batch.query`.
        rows = [
            (table, words.trigrams)
            for tower, words in zip(self.towers, batch, strict=False)
            for table in tower.tables
        ]
        self.optimizer.look_ahead(self.trainable_variables, rows)
