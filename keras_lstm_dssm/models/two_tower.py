"""`TwoTower`, a query and a document encoder that are trained together.

The functions above it compare clicked documents with their negatives.
"""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.encoders.combined_encoder import CombinedEncoder
from keras_lstm_dssm.encoders.text_encoder import TextEncoder
from keras_lstm_dssm.errors import InputError, check_at_least, check_choice
from keras_lstm_dssm.layers.cosine import cosine_matrix, cosine_pairs
from keras_lstm_dssm.layers.letter_trigrams import SyncAtEpochEnd, SyncedWeights
from keras_lstm_dssm.models.pair_batch import (
    HashedPairs,
    PairHasher,
    pair_batches,
    split_pairs,
)
from keras_lstm_dssm.models.text_model import HashedModel, check_rows, is_empty
from keras_lstm_dssm.private_api import replica_count
from keras_lstm_dssm.registration import register
from keras_lstm_dssm.settings.choices import NEGATIVES
from keras_lstm_dssm.text.word_batch import WordBatch

if TYPE_CHECKING:
    from keras_lstm_dssm.distributed.joint_step import JointRows, JointStep


def in_batch(
    query: tf.Tensor,
    document: tf.Tensor,
    clicked: tf.Tensor,
    trained: int | None = None,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Uses every other document of the batch as a negative.

    Each distinct document counts once, so that the clicked document is never
    among the negatives, and a frequent document is only one negative.

    Args:
        query: Vectors `(batch, d)`.
        document: Vectors of the distinct documents, `(distinct, d)`: those
            clicked, and the judged or mined negatives of all rows.
        clicked: int `(batch,)`, the row of `document` that was clicked.
        trained: Number of columns that get a gradient, see `cosine_matrix`.

    Returns:
        Cosines, `(batch, distinct)`, and `clicked`, their labels.
    """
    return cosine_matrix(query, document, trained), clicked


def random_negatives(
    query: tf.Tensor,
    document: tf.Tensor,
    clicked: tf.Tensor,
    further: tf.Tensor,
    n: int,
    seed: tf.Tensor,
    all_clicked: tf.Tensor | None = None,
    first_row: tf.Tensor | int = 0,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Draws n negatives for each query, as the paper does (n = 4).

    They are drawn from the clicked documents of the other rows of the batch.
    A shuffled batch is a random sample of the training documents, and so are
    the negatives; no further document has to be encoded.

    Args:
        query: Vectors `(batch, d)`.
        document: Vectors of the distinct documents, `(distinct, d)`.
        clicked: int `(batch,)`, the row of `document` that was clicked.
        further: int `(batch, k)`, rows of `document` that are negatives,
            too (judged or mined); k may be 0.
        n: Number of negatives to draw for each query.
        seed: int32 `(2,)` for `tf.random.stateless_uniform`.
        all_clicked: If the rows are part of a larger batch: like `clicked`,
            for all of it. Default `None`: the rows are all.
        first_row: Index of the first row in that batch. Default 0.

    Returns:
        `(cosines, labels)`, both `(batch, 1 + n + k)`, the clicked document
        first; a negative equal to the clicked document has the label -1.
    """
    all_clicked = clicked if all_clicked is None else all_clicked
    batch = tf.shape(all_clicked)[0]
    # An offset of 1 to batch - 1 never hits the row itself.
    offset = tf.random.stateless_uniform(
        [batch, n], seed, 1, tf.maximum(batch, 2), tf.int32
    )
    rows = (tf.range(batch)[:, tf.newaxis] + offset) % tf.maximum(batch, 1)
    rows = rows[first_row : first_row + tf.shape(clicked)[0]]
    drawn = tf.concat([tf.gather(all_clicked, rows), further], axis=1)
    clicked = clicked[:, tf.newaxis]
    candidates = tf.gather(document, tf.concat([clicked, drawn], axis=1))
    equal = tf.cast(tf.equal(drawn, clicked), query.dtype)
    labels = tf.concat([tf.ones_like(clicked, query.dtype), -equal], axis=1)
    return cosine_pairs(query[:, tf.newaxis, :], candidates), labels


def clicked_is_nearest(cosines: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """Returns for each query whether its clicked document is the nearest.

    Args:
        cosines: Float `(batch, candidates)`.
        labels: The labels of these cosines, see `in_batch` and
            `random_negatives`.

    Returns:
        bool `(batch,)`.
    """
    if labels.shape.rank == 1:
        of_clicked = tf.gather(cosines, labels, batch_dims=1)
        # No document but the clicked one itself is as near.
        near = cosines >= of_clicked[:, tf.newaxis]
        return tf.math.count_nonzero(near, axis=-1) == 1
    best_negative = tf.reduce_max(tf.where(labels == 0, cosines, -2.0), axis=-1)
    of_clicked = tf.reduce_sum(tf.where(labels > 0, cosines, 0.0), axis=-1)
    return of_clicked > best_negative


def log_q_of_distinct(
    log_q: tf.Tensor, candidates: tf.Tensor, distinct: tf.Tensor
) -> tf.Tensor:
    """Collects the log share of clicks of each distinct document.

    In-batch negatives are sampled in proportion to their clicks. Subtracting
    `log_q`, the log of a document's share of the clicks, from the scores
    trains them as if negatives were sampled uniformly (Bengio and Senecal
    2008; Yi et al. 2019, "logQ").

    Args:
        log_q: Float `(batch,)` or `(batch, 1 + k)`: log shares of the clicked
            documents, and of the judged or mined negatives.
        candidates: int `(batch, 1 + k)`: the index of each of these among
            the distinct documents.
        distinct: The number of distinct documents.

    Returns:
        Float `(distinct,)`; 0 for a document without a `log_q`.
    """
    return tf.math.divide_no_nan(*log_q_sums(log_q, candidates, distinct))


def log_q_sums(
    log_q: tf.Tensor, candidates: tf.Tensor, distinct: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Adds the log shares of each distinct document, and counts them.

    Args:
        log_q: See `log_q_of_distinct`.
        candidates: See `log_q_of_distinct`.
        distinct: The number of distinct documents.

    Returns:
        Sums and numbers, both float `(distinct,)`.
    """
    log_q = tf.reshape(log_q, [tf.shape(candidates)[0], -1])
    index = tf.reshape(candidates[:, : tf.shape(log_q)[1]], [-1, 1])
    count = tf.scatter_nd(index, tf.ones([tf.size(index)]), [distinct])
    total = tf.scatter_nd(index, tf.reshape(log_q, [-1]), [distinct])
    return total, count


class ForgetOutdated(keras.callbacks.Callback):
    """Empties caches of vector columns that depend on replaced weights.

    A callback may set weights after `fit` has built its dataset, such as
    `keras.callbacks.BackupAndRestore` in `on_train_begin`.
    """

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Compare the weights with those that filled the caches (15 ms)."""
        self.model.hasher.forget_outdated()


class ZeroLossWarning(keras.callbacks.Callback):
    """Warns if nothing was learnt in the first epoch of a training.

    Without a negative, as in a log of one title or in batches of one click,
    loss and accuracy are those of a perfect model, and all gradients 0.
    """

    def on_train_begin(self, logs: Any = None) -> None:
        """Forgets the losses of another training."""
        self._epoch_losses: list[float] = []

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Warns after the first epoch, below its progress bar."""
        self._warn()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Keeps the loss."""
        self._epoch_losses.append(logs["loss"])
        self._epoch = epoch + 1

    def on_train_end(self, logs: Any = None) -> None:
        """Warns after a training of a single epoch."""
        self._warn()

    def _warn(self) -> None:
        if self._epoch_losses == [0.0] and self.params["verbose"]:
            print(
                f"warning: the loss of epoch {self._epoch} is 0: nothing was"
                " learnt; expected other titles as negatives in each batch:"
                " check that titles have different words, and batches several"
                " clicks",
                file=sys.stderr,
            )


@register
class TwoTower(SyncedWeights, HashedModel):
    """Trains a query encoder and a document encoder on clicks.

    Palangi et al. 2016, Fig. 3. `fit` takes a `tf.data.Dataset` of batches
    `(query, document)`, string tensors `(batch,)`, or two lists of texts.
    A batch may have a third part, a dict: `negatives`, strings `(batch, k)`,
    further negatives for each query (`GivenNegatives` adds them); `log_q`,
    float `(batch, 1 + k)`, for the logQ correction (`ClickFrequencies` adds
    it); `teacher` and `teacher_texts`, the vectors of an outside encoder, for
    the loss `Distillation` (`TaughtBatches` adds them).

    Rows of the trigram tables that a batch does not read are updated later
    (`LazyRows`). They are brought up to date before the weights are read:
    by `encode`, `get_weights`, saving, `evaluate`, `predict`, exporting and
    a direct call. Within an epoch, call `sync_weights()` from a callback
    before your own `tf.function` or functional model uses an encoder, and
    before you read a variable itself.

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

    hasher: PairHasher

    rankings_hint = "measure rankings with dssm.RankingEvaluation"
    export_hint = (
        "keras_lstm_dssm.export.export_models(model, folder), which writes "
        "both encoders as SavedModels"
    )
    weights_hint = "repeat the pairs that are to count more"

    joint_step: "JointStep | None" = None
    """Joins the training steps of several workers, see `train_jointly`."""

    def __init__(
        self,
        query_encoder: TextEncoder,
        document_encoder: TextEncoder,
        negatives: str = "random",
        n: int = 4,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            PairHasher(query_encoder, document_encoder), seed, **kwargs
        )
        check_choice(NEGATIVES, negatives=negatives)
        check_at_least(1, n=n)
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
        self._joint_rows: list[JointRows] = []
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
        from keras_lstm_dssm.models.kinds import PRESETS

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

    def fit(  # type: ignore[override]
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: Any = "auto",
        callbacks: Any = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: bool = True,
        class_weight: Any = None,
        sample_weight: Any = None,
        **kwargs: Any,
    ) -> keras.callbacks.History:
        """Trains on a dataset of string batches, or on two lists of texts.

        Hashing runs in the dataset, in parallel with the training steps.

        Args:
            x: `tf.data.Dataset` of batches `(query, document)`, or a list
                of queries.
            y: List of the clicked titles, when x is a list.
            batch_size: Pairs in a batch, for lists; 256 by default.
            epochs: See `keras.Model.fit`.
            verbose: See `keras.Model.fit`.
            callbacks: See `keras.Model.fit`.
            validation_split: Share of the lists, at their end, whose loss is
                measured after each epoch and that are not trained on.
            validation_data: A dataset, or a pair of lists, shuffled once.
            shuffle: Whether lists are shuffled anew in each epoch.
            class_weight: Not supported; must be `None`.
            sample_weight: Not supported; must be `None`.
            **kwargs: See `keras.Model.fit`: `initial_epoch`,
                `steps_per_epoch`, `validation_steps`,
                `validation_batch_size`, `validation_freq`.

        Returns:
            The history: loss and accuracy of each epoch. Accuracy is the
            share of rows whose clicked document is nearer than every
            negative.

        Raises:
            InputError: x and y are neither a dataset of pairs nor two lists
                of equal length, weights are given, or an encoder was not
                adapted.
            tf.errors.InvalidArgumentError: The loss is NaN or infinite, or the
                parts of a batch have different numbers of rows.
        """
        if validation_split:
            x, y, validation_data = split_pairs(x, y, validation_split)
        if validation_data is not None:
            if isinstance(validation_data, tf.data.Dataset):
                validation_data = (validation_data, None)
            queries, documents, *weights = validation_data
            self._refuse(sample_weight=weights[0] if weights else None)
            size = kwargs.pop("validation_batch_size", None) or batch_size
            validation_data = pair_batches(
                queries, documents, size, shuffle_seed=self.seed
            )
        if not isinstance(callbacks, keras.callbacks.CallbackList):
            callbacks = [
                SyncAtEpochEnd(),
                ForgetOutdated(),
                ZeroLossWarning(),
                *keras.tree.flatten(callbacks or []),
            ]
        if replica_count(self) > 1:  # which update all rows in each step
            self.sync_weights()
        try:
            return super().fit(
                x,
                y=y,
                batch_size=batch_size,
                epochs=epochs,
                verbose=verbose,
                callbacks=callbacks,
                validation_data=validation_data,
                shuffle=shuffle,
                class_weight=class_weight,
                sample_weight=sample_weight,
                **kwargs,
            )
        finally:
            self.sync_weights()

    def evaluate(  # type: ignore[override]
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: Any = "auto",
        sample_weight: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Measures loss and accuracy; x and y as for `fit`.

        The negatives of a pair come from its batch, so lists are shuffled
        first, always in the same order.
        """
        self._refuse(sample_weight=sample_weight)
        pairs = pair_batches(x, y, batch_size, shuffle_seed=self.seed)
        self.sync_weights()
        return super().evaluate(pairs, verbose=verbose, **kwargs)

    def _check_ready(self) -> None:
        for tower in self.towers:
            if tower.needs_adapt:
                raise InputError(
                    f"{tower.name} has not been adapted: call "
                    "adapt(titles) with the document titles before fit, or "
                    "train with dssm.train"
                )

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

    def predict(
        self,
        x: Any,
        y: Any = None,
        batch_size: int | None = None,
        verbose: Any = "auto",
        **kwargs: Any,
    ) -> Any:
        """Returns the cosines of pairs, `(pairs,)`; x and y as for `fit`."""
        pairs = pair_batches(x, y, batch_size)
        self.sync_weights()
        if is_empty(pairs):  # Keras would raise UnboundLocalError
            return np.zeros(0, self.compute_dtype)
        return super().predict(self._hashed(pairs), verbose=verbose, **kwargs)

    def predict_step(self, data: tuple[Any, Any]) -> tf.Tensor:
        """Returns the cosines of a batch of pairs."""
        pairs = self._batch(data)
        return self((pairs.query, pairs.document))

    def sync_weights(self) -> None:
        """Brings the trigram tables up to date with the last training step.

        Rarely needs to be called directly, see the docstring of the class.
        """
        for tower in self.towers:
            tower.sync_weights()

    def train_jointly(self, joint_step: "JointStep") -> None:
        """Makes each training step one of all workers' batches.

        All workers must have equal weights and call `fit` with the same
        number of batches.

        Args:
            joint_step: What the workers exchange.
        """
        self.joint_step = joint_step
        self.hasher.fingerprints = True
        self.train_function = None  # traced anew

    def _batches(
        self,
        x: Any,
        y: Any = None,
        batch_size: int | None = None,
        shuffle_seed: int | None = None,
    ) -> tf.data.Dataset:
        return pair_batches(x, y, batch_size, shuffle_seed, reshuffle=True)

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
