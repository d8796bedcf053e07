"""PairSteps: one training step, or one test step, on a batch of pairs."""

from contextlib import nullcontext
from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.encoders import TextEncoder
from keras_lstm_dssm.errors import NOT_FINITE, InputError
from keras_lstm_dssm.layers.synced_weights import SyncedWeights
from keras_lstm_dssm.models.pairs import HashedPairs, PairHasher, is_hashed
from keras_lstm_dssm.private_api import (
    BuiltModel,
    accept_any_inputs,
    replica_count,
)


class PairSteps(SyncedWeights, BuiltModel):
    """Compiles a model of pairs of texts, and takes its training steps.

    A subclass has `towers`, the encoders whose gradients are renormalised
    separately; `call`, which scores pairs; and `pair_loss`.

    Args:
        hasher: `PairHasher` that turns batches of texts into the input of a
            training step.
        **kwargs: Arguments of `keras.Model`.
    """

    def __init__(self, hasher: PairHasher, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._hash = hasher
        self._accuracy = keras.metrics.Mean(name="accuracy")
        accept_any_inputs(self)
        self.built = True

    @property
    def towers(self) -> list[TextEncoder]:
        """The distinct encoders, the query's first."""
        raise NotImplementedError(f"{type(self).__name__} has no towers")

    def pair_loss(self, pairs: HashedPairs, training: bool) -> tf.Tensor:
        """Returns the loss of a batch, and updates the metrics."""
        raise NotImplementedError(f"{type(self).__name__} has no pair_loss")

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
        if kwargs.get("metrics") or kwargs.get("weighted_metrics"):
            raise InputError(
                "the model has two metrics, loss and accuracy, and takes no "
                "others; measure rankings with dssm.RankingEvaluation"
            )
        if jit_compile is True:
            raise InputError(
                "jit_compile=True is not supported: XLA has no string "
                "operations; leave it out"
            )
        self.sync_weights()  # pending updates of the previous optimizer
        super().compile(
            optimizer=optimizer, loss=loss, jit_compile=False, **kwargs
        )
        if isinstance(self.optimizer, keras.optimizers.LossScaleOptimizer):
            raise InputError(
                "mixed precision with loss scaling is not supported: use the "
                "dtype policy float32 or float64"
            )
        self.optimizer.build(self.trainable_variables)
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
        pairs = self._pairs(data)
        return self((pairs.query, pairs.document))

    def train_step(self, data: tuple[Any, Any]) -> dict[str, Any]:
        """Takes one training step, Algorithm 1.

        A function of the batch alone, so that `tf.distribute` can run it.

        Args:
            data: `(query, document)`, strings or `WordBatch`; with strings
                optionally a dict as third part, see `TwoTower`.

        Raises:
            tf.errors.InvalidArgumentError: The loss is NaN or infinite; the
                weights stay those before the step.
        """
        pairs = self._pairs(data)
        variables = self.trainable_variables
        optimizer = self.optimizer
        step = getattr(optimizer, "eager_step", nullcontext)
        with step() if tf.executing_eagerly() else nullcontext():
            if hasattr(optimizer, "look_ahead"):
                # Tied towers are one, and read the rows of `pairs.query`.
                rows = [
                    (table, words.trigrams)
                    for tower, words in zip(self.towers, pairs, strict=False)
                    for table in tower.tables
                ]
                optimizer.look_ahead(variables, rows)
            with tf.GradientTape() as tape:
                loss = optimizer.scale_loss(
                    self.pair_loss(pairs, training=True)
                )
            gradients = tape.gradient(loss, [v.value for v in variables])
            # Checking one number in the graph takes no measurable time.
            finite = tf.debugging.assert_all_finite(loss, NOT_FINITE)
            with tf.control_dependencies([finite]):
                optimizer.apply(gradients, variables)
        return self.get_metrics_result()

    def test_step(self, data: tuple[Any, Any]) -> dict[str, Any]:
        """Measures loss and accuracy of a batch, as for `train_step`."""
        self.pair_loss(self._pairs(data), training=False)
        return self.get_metrics_result()

    def sync_weights(self) -> None:
        """Brings the trigram tables up to date with the last training step.

        Rarely needs to be called directly; see `PairModel`.
        """
        for tower in self.towers:
            tower.sync_weights()

    def _pairs(self, data: tuple[Any, ...]) -> HashedPairs:
        return data[0] if is_hashed(data) else self._hash(*data)

    def get_compile_config(self) -> dict[str, Any] | None:
        """Returns optimizer and loss, for saving; `None` without them."""
        if not self.compiled:
            return None
        serialize = keras.saving.serialize_keras_object
        return {
            "optimizer": serialize(self.optimizer),
            "loss": serialize(self.loss),
        }

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compiles a loaded model as it was compiled when saved."""
        self.compile(**keras.saving.deserialize_keras_object(config))
