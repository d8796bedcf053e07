"""PairModel: trains and evaluates a model of pairs of texts."""

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.encoders import TextEncoder
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.models.pairs import (
    HashedPairs,
    PairHasher,
    is_hashed,
    pair_batches,
    split_pairs,
)
from keras_lstm_dssm.private_api import (
    BuiltModel,
    accept_any_inputs,
    replica_count,
)

NOT_FINITE = "TwoTower: the loss is NaN or infinite; lower the learning rate"
"""Message of the `InvalidArgumentError` that stops `fit` in this case."""


class PairModel(BuiltModel):
    """Hashes pairs, takes training steps, and keeps the weights in sync.

    A subclass has `towers`, the encoders whose gradients are renormalised
    separately; `call`, which scores pairs; and `pair_loss`.

    Rows of the trigram tables that a batch does not read are updated later
    (`LazyRows`). They are brought up to date before the weights are read:
    by `encode`, `get_weights`, saving, `evaluate`, `predict`, exporting and
    a direct call. Within an epoch, call `sync_weights()` from a callback
    before your own `tf.function` or functional model uses an encoder, and
    before you read a variable itself.

    Args:
        hasher: `PairHasher` that turns batches of texts into the input of a
            training step.
        **kwargs: Arguments of `keras.Model`.
    """

    def __init__(self, hasher: PairHasher, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._hash = hasher
        self._lazy = False
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
        self._lazy = (
            getattr(self.optimizer, "lazy", False) and replica_count(self) == 1
        )
        if self._lazy:
            self.optimizer.set_tables(
                [table for tower in self.towers for table in tower.tables]
            )
        for tower in self.towers:
            tower.before_read = getattr(self.optimizer, "sync", None)

    def fit(
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
        """
        _refuse_weights(class_weight, sample_weight)
        for tower in self.towers:
            if tower.needs_adapt:
                raise InputError(
                    f"{tower.name} has not been adapted: call "
                    "adapt(titles) with the document titles before fit, or "
                    "train with dssm.train"
                )
        if validation_split:
            x, y, validation_data = split_pairs(x, y, validation_split)
        if validation_data is not None:
            if isinstance(validation_data, tf.data.Dataset):
                validation_data = (validation_data, None)
            queries, documents, *weights = validation_data
            _refuse_weights(None, weights[0] if weights else None)
            size = kwargs.pop("validation_batch_size", None) or batch_size
            validation_data = self._hashed(
                pair_batches(queries, documents, size, shuffle_seed=self.seed)
            )
        # A `fit` that continues another one shuffles in another order.
        done = int(self.optimizer.iterations.numpy()) if self.compiled else 0
        pairs = pair_batches(
            x,
            y,
            batch_size,
            self.seed + done if shuffle else None,
            reshuffle=True,
        )
        if not isinstance(callbacks, keras.callbacks.CallbackList):
            callbacks = [SyncWeights(), *_listed(callbacks)]
        try:
            return super().fit(
                self._hashed(pairs),
                epochs=epochs,
                verbose=verbose,
                callbacks=callbacks,
                validation_data=validation_data,
                shuffle=False,  # the dataset has shuffled
                **kwargs,
            )
        except KeyboardInterrupt:
            # Called before the sync below, which rounds the pending rows.
            for callback in _listed(callbacks):
                getattr(callback, "on_interrupt", lambda: None)()
            raise
        finally:
            self.sync_weights()

    def evaluate(
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
        _refuse_weights(None, sample_weight)
        pairs = pair_batches(x, y, batch_size, shuffle_seed=self.seed)
        self.sync_weights()
        return super().evaluate(self._hashed(pairs), verbose=verbose, **kwargs)

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
        return super().predict(self._hashed(pairs), verbose=verbose, **kwargs)

    def train_on_batch(
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        class_weight: Any = None,
        return_dict: bool = False,
    ) -> Any:
        """Takes one training step, on all texts of two lists.

        All rows of the tables are brought up to date after it, which takes
        longer than the step itself: for many steps, `fit` is faster.

        Args:
            x: List or string tensor of queries.
            y: List or string tensor of the clicked titles.
            sample_weight: Not supported; must be `None`.
            class_weight: Not supported; must be `None`.
            return_dict: See `keras.Model.train_on_batch`.
        """
        _refuse_weights(class_weight, sample_weight)
        pairs = self._only_batch(x, y)
        try:
            return super().train_on_batch(*pairs, return_dict=return_dict)
        finally:
            self.sync_weights()

    def test_on_batch(
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        return_dict: bool = False,
    ) -> Any:
        """Measures loss and accuracy of one batch, two lists of texts."""
        _refuse_weights(None, sample_weight)
        self.sync_weights()
        return super().test_on_batch(
            *self._only_batch(x, y), return_dict=return_dict
        )

    def predict_on_batch(self, x: Any, y: Any = None) -> Any:
        """Returns the cosines of one batch of pairs, two lists of texts."""
        if y is None and isinstance(x, list | tuple) and len(x) == 2:
            x, y = x
        return self.predict(x, y, batch_size=max(1, len(x)), verbose=0)

    def export(self, *args: Any, **kwargs: Any) -> None:
        """Raises `InputError`: a model of pairs is exported as encoders."""
        raise InputError(
            "TwoTower.export is not supported, because Keras would trace a "
            "numeric input: use keras_lstm_dssm.export.export_models(model, "
            "folder), which writes both encoders as SavedModels"
        )

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
            if self._lazy:
                rows = [
                    (table, words.trigrams)
                    for tower, words in zip(
                        self.towers, (pairs.query, pairs.document), strict=False
                    )
                    for table in tower.tables
                ]
                optimizer.look_ahead(variables, rows)
            elif hasattr(optimizer, "look_ahead"):
                optimizer.look_ahead(variables)
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

        Rarely needs to be called directly; see the class.
        """
        for tower in self.towers:
            tower.sync_weights()

    def get_weights(self) -> list[Any]:
        """Returns all weights, up to date, see `keras.Model.get_weights`."""
        self.sync_weights()
        return super().get_weights()

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Replaces all weights, see `keras.Model.set_weights`."""
        self.sync_weights()  # a pending update would change the new rows
        super().set_weights(weights)

    def save_own_variables(self, store: Any) -> None:
        """Saves the model's variables, see `keras.Model`.

        Keras calls it before it saves the encoders and the optimizer, so the
        sync makes all of them consistent.
        """
        self.sync_weights()
        super().save_own_variables(store)

    def load_weights(self, *args: Any, **kwargs: Any) -> None:
        """Loads weights, see `keras.Model.load_weights`."""
        self.sync_weights()
        super().load_weights(*args, **kwargs)

    def _pairs(self, data: tuple[Any, ...]) -> HashedPairs:
        return data[0] if is_hashed(data) else self._hash(*data)

    def _only_batch(self, x: Any, y: Any) -> tuple[tf.Tensor, tf.Tensor]:
        batch = next(iter(pair_batches(x, y, batch_size=2**31 - 1)))
        return batch[0], batch[1]

    def _hashed(self, pairs: tf.data.Dataset) -> tf.data.Dataset:
        """Hashes in the dataset, unless replicas divide its batches."""
        if replica_count(self) > 1:
            return pairs
        return self._hash.dataset(pairs)

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


class SyncWeights(keras.callbacks.Callback):
    """Brings all weights up to date at the end of each epoch."""

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Updates the rows that no batch has read."""
        self.model.sync_weights()


def _listed(callbacks: Any) -> list[keras.callbacks.Callback]:
    if callbacks is None:
        return []
    if isinstance(callbacks, keras.callbacks.CallbackList):
        return callbacks.callbacks
    return list(callbacks) if isinstance(callbacks, Iterable) else [callbacks]


def _refuse_weights(class_weight: Any, sample_weight: Any) -> None:
    for name, value in (
        ("class_weight", class_weight),
        ("sample_weight", sample_weight),
    ):
        if value is not None:
            raise InputError(
                f"{name} is not supported: repeat the pairs that are to "
                "count more"
            )
