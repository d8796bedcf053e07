"""TwoTower: a query encoder and a document encoder trained together."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.encoders import CombinedEncoder, TextEncoder
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.layers import cosine_matrix, cosine_pairs
from keras_lstm_dssm.models.hashed_model import check_rows
from keras_lstm_dssm.models.negatives import (
    clicked_is_nearest,
    in_batch,
    log_q_of_distinct,
    random_negatives,
)
from keras_lstm_dssm.models.pair_model import PairModel
from keras_lstm_dssm.models.pairs import HashedPairs, PairHasher
from keras_lstm_dssm.private_api import replica_count
from keras_lstm_dssm.registration import register
from keras_lstm_dssm.settings.choices import NEGATIVES
from keras_lstm_dssm.text import WordBatch


@register
class TwoTower(PairModel):
    """Trains a query encoder and a document encoder on clicks.

    Palangi et al. 2016, Fig. 3. `fit` takes a `tf.data.Dataset` of batches
    `(query, document)`, string tensors `(batch,)`, or two lists of texts.
    A batch may have a third part, a dict: `negatives`, strings `(batch, k)`,
    further negatives for each query (`GivenNegatives` adds them); `log_q`,
    float `(batch, 1 + k)`, for the logQ correction (`ClickFrequencies` adds
    it); `teacher` and `teacher_texts`, the vectors of an outside encoder, for
    the loss `Distillation` (`TaughtBatches` adds them).

    Args:
        query_encoder: Encoder of queries, parameters Lambda_Q.
        document_encoder: Encoder of document titles, Lambda_D; the same
            object as `query_encoder` ties the towers.
        negatives: `"random"`, the default and the paper's: `n` documents
            drawn for each query; or `"in_batch"`: all other documents of the
            batch.
        n: Number of random negatives for each query. Default 4.
        seed: Seed of the random negatives. Default 0.

    Call arguments:
        inputs: `(query, document)`, each strings `(batch,)` or `WordBatch`.

    Returns:
        Cosines R(Q, D) of the rows, `(batch,)`, eq. (3).

    Example:
    >>> model = TwoTower.from_preset("lstm_96")
    >>> model.compile(NesterovMomentum(0.1), CosineSoftmax(10.0))
    >>> model.fit(pairs, epochs=8, callbacks=[NesterovSchedule()])
    >>> model.query_encoder.encode(["angle bracket"]).shape
    (1, 96)
    """

    def __init__(
        self,
        query_encoder: TextEncoder,
        document_encoder: TextEncoder,
        negatives: str = "random",
        n: int = 4,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(PairHasher(query_encoder, document_encoder), **kwargs)
        if negatives not in NEGATIVES:
            raise InputError(
                f"negatives must be one of {', '.join(NEGATIVES)}, "
                f"not {negatives!r}"
            )
        if n < 1:
            raise InputError(f"n must be at least 1, not {n}")
        widths = query_encoder.dimension, document_encoder.dimension
        if widths[0] != widths[1]:
            raise InputError(
                "both encoders must give vectors of one width; the query's "
                f"has {widths[0]}, the document's {widths[1]}"
            )
        self.query_encoder = query_encoder
        self.document_encoder = document_encoder
        self.negatives = negatives
        self.n = n
        self.seed = seed
        for tower in self.towers:
            tower.build((None,))  # summaries show the recorded shape

    @classmethod
    def from_preset(
        cls, preset: str, seed: int = 0, **changes: Any
    ) -> "TwoTower":
        """Makes the model of a preset's recipe, not yet trained.

        `dssm.train` also adapts, compiles and trains it as the recipe says.

        Args:
            preset: A name in `PRESETS`, such as `"lstm_96"`.
            seed: Seed of the weights and of the random negatives.
            **changes: Attributes of the `Recipe` that are to differ, such as
                `negatives="in_batch"` or `encoder_config={"cells": 48}`.

        Raises:
            InputError: There is no such preset, or a change is wrong.
        """
        from keras_lstm_dssm.models.recipe import PRESETS

        if preset not in PRESETS:
            raise InputError(
                f"unknown preset {preset!r}: expected one of "
                f"{', '.join(PRESETS)}"
            )
        return PRESETS[preset].replace(**changes).build(seed)

    @property
    def tied(self) -> bool:
        """Whether one encoder serves for queries and documents."""
        return self.query_encoder is self.document_encoder

    @property
    def towers(self) -> list[TextEncoder]:
        """The distinct encoders: two, or the one of tied towers."""
        both = [self.query_encoder, self.document_encoder]
        return both[:1] if self.tied else both

    @property
    def needs_adapt(self) -> bool:
        """Whether `adapt` must be called before training."""
        return any(tower.needs_adapt for tower in self.towers)

    def adapt(self, titles: Sequence[str]) -> None:
        """Computes the statistics of titles that some encoders need.

        `CombinedEncoder` needs document frequencies of words; for other
        encoders nothing happens.

        Args:
            titles: The document titles, each of them once.
        """
        caches = self.hasher.query_cache, self.hasher.document_cache
        for tower, cache in zip(self.towers, caches, strict=False):
            if isinstance(tower, CombinedEncoder):
                tower.adapt(titles, cache=cache)

    def call(self, inputs: tuple[Any, Any]) -> tf.Tensor:
        """Returns the cosine of each query and its document."""
        query = self.query_encoder(inputs[0])
        document = self.document_encoder(inputs[1])
        check_rows(queries=query, documents=document)
        return cosine_pairs(query, document)

    def batch_loss(self, batch: HashedPairs, training: bool) -> tf.Tensor:
        """Returns the loss of the clicked documents against their negatives."""
        query, document = batch.query, batch.document
        clicked, negatives = document.text_index, batch.negatives
        teacher = batch.teacher if training else None
        joint = batch.joint if training else None
        in_parts = self._computes_in_parts(batch) and joint is None
        candidates = tf.concat([clicked[:, tf.newaxis], negatives], axis=1)
        if self.tied:  # `query` and `document` hold the same distinct texts
            both = self.query_encoder.compose(query, training)
            titles, index = tf.unique(tf.reshape(candidates, [-1]))
            candidates = tf.reshape(index, tf.shape(candidates))
            clicked, negatives = candidates[:, 0], candidates[:, 1:]
            if teacher is not None:
                teacher = tf.gather(teacher, titles, axis=1)
            vectors = (
                tf.gather(both, query.text_index),
                tf.gather(both, titles),
            )
        elif not in_parts:
            vectors = (
                self.query_encoder(query, training=training),
                self.document_encoder.compose(document, training),
            )
        if joint is not None and self.joint_step is not None:
            queries, documents = vectors
            vectors = (
                queries,
                self.joint_step.share_vectors(
                    documents, joint, self.document_encoder.trained_dimension
                ),
            )
            candidates = tf.gather(joint.index, candidates)
            clicked, negatives = candidates[:, 0], candidates[:, 1:]
        trained = max(tower.trained_dimension for tower in self.towers)
        if in_parts:
            cosines = self._cosines_of_parts(query, document, training)
            labels = clicked
        elif self.negatives == "in_batch":
            cosines, labels = in_batch(*vectors, clicked, trained)
        else:
            # A function of the training step, so that a resumed run draws
            # the same; Keras does not save the state of a generator. An
            # evaluation always draws the same negatives.
            step = tf.cast(self.optimizer.iterations.value, tf.int32)
            seed = tf.stack([self.seed, step if training else -1])
            cosines, labels = random_negatives(
                *vectors,
                clicked,
                negatives,
                self.n,
                seed,
                joint and joint.clicked,
                joint.first_row if joint else 0,
            )
        scores = cosines
        if batch.log_q is not None:
            gamma = self._gamma_for_log_q()
            distinct = tf.shape(cosines)[1]
            log_q = joint.log_q if joint else None
            if log_q is None:
                log_q = log_q_of_distinct(batch.log_q, candidates, distinct)
            scores -= tf.cast(log_q / gamma, cosines.dtype)
        loss = self.compute_loss(y=self._labels(labels, scores), y_pred=scores)
        if teacher is not None:
            all_cosines = (
                cosines
                if self.negatives == "in_batch"
                else cosine_matrix(*vectors, trained)
            )
            loss += self._teacher_loss(teacher, all_cosines)
        self._record(loss, clicked_is_nearest(cosines, labels))
        if joint is not None:  # of the mean over the rows of all workers
            loss *= tf.cast(joint.share, loss.dtype)
        return loss

    def _computes_in_parts(self, batch: HashedPairs) -> bool:
        """Returns whether both towers' vectors have equal untrained columns.

        The cosines are then computed by `_cosines_of_parts`.
        """
        query, document = batch.query.fixed, batch.document.fixed
        if self.negatives != "in_batch" or self.tied:
            return False
        if query is None or document is None:
            return False
        return bool(query.shape[1] == document.shape[1])

    def _cosines_of_parts(
        self, query: WordBatch, document: WordBatch, training: bool
    ) -> tf.Tensor:
        """Computes the cosine of each query with each distinct document.

        The vectors have length 1, and only their first columns are trained.
        The cosine is the sum of two inner products, of the trained and of the
        untrained columns. The second does not depend on the LSTM, so that
        TensorFlow can compute it in parallel with the recurrence.

        Returns:
            What `cosine_matrix` returns, `(batch, distinct)`.
        """
        queries = self.query_encoder.compose_trained(query, training)
        documents = self.document_encoder.compose_trained(document, training)
        blocks = (queries, documents), (query.fixed, document.fixed)
        return tf.add_n(
            [
                tf.matmul(
                    tf.gather(of_query, query.text_index),
                    of_document,
                    transpose_b=True,
                )
                for of_query, of_document in blocks
            ]
        )

    def _labels(self, labels: tf.Tensor, scores: tf.Tensor) -> tf.Tensor:
        """Converts indices to one-hot labels for losses that need those."""
        if labels.shape.rank == 1 and not getattr(
            self.loss, "takes_indices", False
        ):
            return tf.one_hot(labels, tf.shape(scores)[1], dtype=scores.dtype)
        return labels

    def _teacher_loss(
        self, teacher: tf.Tensor, cosines: tf.Tensor
    ) -> tf.Tensor:
        """Returns what a teacher adds to the loss, see `Distillation`."""
        if not hasattr(self.loss, "teacher_loss"):
            raise InputError(
                "the batches have a teacher's vectors, from which the loss "
                f"{self.loss!r} does not learn: compile with dssm.Distillation"
            )
        # Keras divides the loss of the clicks in the same way.
        return self.loss.teacher_loss(teacher, cosines) / replica_count(self)

    def _gamma_for_log_q(self) -> float:
        """Returns the scale of the cosines, which logQ corrects before it.

        Raises:
            InputError: Loss or negatives are not those that it corrects.
        """
        gamma: float | None = getattr(self.loss, "gamma", None)
        if self.negatives != "in_batch" or gamma is None:
            raise InputError(
                "log_q corrects CosineSoftmax with in-batch negatives; got "
                f"negatives={self.negatives!r} and {self.loss!r}"
            )
        return gamma

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor arguments as a dict, for `from_config`."""
        serialize = keras.saving.serialize_keras_object
        return {
            "name": self.name,
            "query_encoder": serialize(self.query_encoder),
            # `None`: one encoder is both towers.
            "document_encoder": None
            if self.tied
            else serialize(self.document_encoder),
            "negatives": self.negatives,
            "n": self.n,
            "seed": self.seed,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "TwoTower":
        """Rebuilds the model with its encoders."""
        deserialize = keras.saving.deserialize_keras_object
        query = deserialize(config["query_encoder"])
        document = deserialize(config["document_encoder"]) or query
        return cls(
            **{**config, "query_encoder": query, "document_encoder": document}
        )
