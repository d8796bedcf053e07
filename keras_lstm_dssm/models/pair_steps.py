"""PairSteps: training steps of two towers, whose tables follow lazily."""

from typing import Any

import tensorflow as tf

from keras_lstm_dssm.encoders import TextEncoder
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.layers.synced_weights import SyncedWeights
from keras_lstm_dssm.models.hashed_model import HashedModel
from keras_lstm_dssm.models.negatives import log_q_sums
from keras_lstm_dssm.models.pairs import HashedPairs, PairHasher
from keras_lstm_dssm.workers import JointRows, JointStep


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

    joint_step: JointStep | None = None
    """Joins the training steps of several workers, see `train_jointly`."""

    def __init__(self, hasher: PairHasher, **kwargs: Any) -> None:
        super().__init__(hasher, HashedPairs, **kwargs)
        self.hasher = hasher
        self._joint_rows: list[JointRows] = []

    def train_jointly(self, joint_step: JointStep) -> None:
        """Makes each training step one of all workers' batches.

        All workers must have equal weights and call `fit` with the same
        number of batches.

        Args:
            joint_step: What the workers exchange.
        """
        self.joint_step = joint_step
        self.hasher.fingerprints = True
        self.train_function = None  # traced anew

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
            InputError: Metrics, XLA or half precision are requested.
        """
        self.sync_weights()  # pending updates of the previous optimizer
        super().compile(optimizer, loss, jit_compile=jit_compile, **kwargs)
        if hasattr(self.optimizer, "set_groups"):
            self.optimizer.set_groups(
                [tower.trainable_variables for tower in self.towers]
            )
        if getattr(self.optimizer, "lazy", False):
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

    def _training_dataset(self, batches: tf.data.Dataset) -> tf.data.Dataset:
        return self.hasher.dataset(batches, fixed=True)

    def _before_gradient(self, batch: HashedPairs) -> None:
        """Moves the weights to the look-ahead point of Algorithm 1."""
        if not hasattr(self.optimizer, "look_ahead"):
            return
        # Tied towers are one, and read the rows of `batch.query`.
        read = (
            [joint.rows for joint in self._joint_rows]
            if self.joint_step
            else [
                words.trigrams
                for words in (batch.query, batch.document)[: len(self.towers)]
            ]
        )
        rows = [
            (table, of_tower)
            for tower, of_tower in zip(self.towers, read, strict=True)
            for table in tower.tables
        ]
        self.optimizer.look_ahead(self.trainable_variables, rows)

    def _joined(self, batch: HashedPairs) -> HashedPairs:
        """Exchanges rows and titles with the other workers.

        Raises:
            InputError: The batch has a teacher's vectors.
        """
        if self.joint_step is None:
            return batch
        if batch.teacher is not None or batch.fingerprints is None:
            raise InputError(
                "several workers train on strings and without a teacher: got "
                "batches with a teacher's vectors, or hashed ones"
            )
        clicked = batch.document.text_index
        candidates = tf.concat([clicked[:, None], batch.negatives], axis=1)
        fingerprints = batch.fingerprints
        if len(self.towers) == 1:  # `document` has the queries, too
            titles, index = tf.unique(tf.reshape(candidates, [-1]))
            candidates = tf.reshape(index, tf.shape(candidates))
            clicked = candidates[:, 0]
            fingerprints = tf.gather(fingerprints, titles)
        log_q = None
        if batch.log_q is not None:
            log_q = log_q_sums(batch.log_q, candidates, tf.size(fingerprints))
        self._joint_rows, joint = self.joint_step.join(
            [
                words.trigrams
                for words in (batch.query, batch.document)[: len(self.towers)]
            ],
            [tower.trigrams.size for tower in self.towers],
            fingerprints,
            clicked,
            tf.shape(candidates)[1],
            log_q,
        )
        return batch._replace(joint=joint)

    def _summed(
        self, loss: tf.Tensor, gradients: list[Any]
    ) -> tuple[tf.Tensor, list[Any]]:
        """Adds the loss and the gradients of the other workers."""
        if self.joint_step is None:
            return loss, gradients
        rows_of = {
            id(table): rows
            for tower, rows in zip(self.towers, self._joint_rows, strict=True)
            for table in tower.tables
        }
        rows = [rows_of.get(id(v)) for v in self.trainable_variables]
        return self.joint_step.sum_gradients(loss, gradients, rows)
