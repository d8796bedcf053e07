"""PairModel: how a model of pairs of texts is fitted, whatever it computes."""

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
)

NOT_FINITE = "TwoTower: the loss is NaN or infinite; train with a smaller step"
"""What the error says, an `InvalidArgumentError`, that stops `fit` then."""


class PairModel(keras.Model):
    """Hashes pairs, takes the paper's update, and keeps the tables settled.

    A subclass has `towers`, the encoders whose gradients are renormalised
    each on its own; `call`, which scores pairs; and `pair_loss`.

    Args:
        hasher: Makes batches of texts into what a step computes with.
    """

    def __init__(self, hasher: PairHasher, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._hash = hasher
        self._accuracy = keras.metrics.Mean(name="accuracy")
        self._convert_input_args = False
        self._allow_non_tensor_positional_args = True
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
        """Sets optimizer and loss; each tower's gradient is a group.

        Args:
            optimizer: `NesterovMomentum`, or any Keras optimizer.
            loss: `CosineSoftmax`.
            jit_compile: XLA has no string operations, so False.
            **kwargs: See `keras.Model.compile`; loss and accuracy are the
                only metrics.
        """
        if kwargs.get("metrics") or kwargs.get("weighted_metrics"):
            raise InputError(
                "the model has its own metrics, loss and accuracy; measure "
                "rankings with keras_lstm_dssm.evaluation"
            )
        self.settle()  # rows that another optimizer has left behind
        super().compile(
            optimizer=optimizer, loss=loss, jit_compile=jit_compile, **kwargs
        )
        self.optimizer.build(self.trainable_variables)
        if hasattr(self.optimizer, "set_groups"):
            self.optimizer.set_groups(
                [tower.trainable_variables for tower in self.towers]
            )
        # Replicas read rows of their own: there the update stays dense.
        self._lazy = (
            getattr(self.optimizer, "lazy", False)
            and self.distribute_strategy.num_replicas_in_sync == 1
        )
        if self._lazy:
            self.optimizer.set_tables(
                [table for tower in self.towers for table in tower.tables]
            )

    def fit(
        self, x: Any = None, y: Any = None, **kwargs: Any
    ) -> keras.callbacks.History:
        """Trains on a dataset of string batches, or on two lists of texts.

        Hashing runs in the dataset, beside the steps.

        Args:
            x: `tf.data.Dataset` of batches `(query, document)`, or a list
                of queries.
            y: List of the clicked titles, when x is a list.
            **kwargs: See `keras.Model.fit`: epochs, callbacks, verbose,
                steps_per_epoch, initial_epoch, and for lists batch_size and
                shuffle. `validation_data` is a dataset, or a pair of lists.

        Returns:
            The history: loss and accuracy of each epoch, the share of rows
            whose clicked document is nearer than every negative.

        Raises:
            InputError: x and y are neither a dataset of pairs nor two lists.
        """
        size = kwargs.pop("batch_size", None)
        validation = kwargs.pop("validation_data", None)
        if validation is not None:
            if isinstance(validation, tf.data.Dataset):
                validation = (validation, None)
            queries, documents = validation
            kwargs["validation_data"] = self._hashed(
                pair_batches(queries, documents, size)
            )
        seed = self.seed if kwargs.pop("shuffle", True) else None
        pairs = pair_batches(x, y, size, shuffle_seed=seed)
        kwargs["shuffle"] = False  # the dataset has shuffled
        callbacks = kwargs.pop("callbacks", None) or []
        if isinstance(callbacks, keras.callbacks.Callback):
            callbacks = [callbacks]
        callbacks = [_Settle(), *callbacks]
        try:
            return super().fit(
                self._hashed(pairs), callbacks=callbacks, **kwargs
            )
        except KeyboardInterrupt:
            # Before rows are settled, which rounds them differently than an
            # uninterrupted run would.
            for callback in callbacks:
                getattr(callback, "on_interrupt", lambda: None)()
            raise
        finally:
            self.settle()

    def evaluate(self, x: Any = None, y: Any = None, **kwargs: Any) -> Any:
        """Measures loss and accuracy; arguments as for `fit`."""
        pairs = pair_batches(x, y, kwargs.pop("batch_size", None))
        self.settle()
        return super().evaluate(self._hashed(pairs), **kwargs)

    def predict(self, x: Any, y: Any = None, **kwargs: Any) -> Any:
        """Cosines of the pairs, `(pairs,)`; x and y as for `fit`."""
        pairs = pair_batches(x, y, kwargs.pop("batch_size", None))
        self.settle()
        return super().predict(self._hashed(pairs), **kwargs)

    def predict_step(self, data: tuple[Any, Any]) -> tf.Tensor:
        """Cosines of a batch of pairs."""
        pairs = self._pairs(data)
        return self((pairs.query, pairs.document))

    def train_step(self, data: tuple[Any, Any]) -> dict[str, Any]:
        """Takes one update, Algorithm 1.

        A function of the batch alone, so that `tf.distribute` can run it.

        Args:
            data: `(query, document)`, strings or `WordBatch`, and with
                strings a dict; see the class.

        Raises:
            tf.errors.InvalidArgumentError: The loss is NaN or infinite; the
                update was not taken.
        """
        pairs = self._pairs(data)
        variables = self.trainable_variables
        if self._lazy:
            rows = [
                (table, words.trigrams)
                for tower, words in zip(
                    self.towers, (pairs.query, pairs.document), strict=False
                )
                for table in tower.tables
            ]
            self.optimizer.look_ahead(variables, rows)
        elif hasattr(self.optimizer, "look_ahead"):
            self.optimizer.look_ahead(variables)
        with tf.GradientTape() as tape:
            loss = self.optimizer.scale_loss(
                self.pair_loss(pairs, training=True)
            )
        gradients = tape.gradient(loss, [v.value for v in variables])
        # One number looked at, in the graph: it costs nothing.
        finite = tf.debugging.assert_all_finite(loss, NOT_FINITE)
        with tf.control_dependencies([finite]):
            self.optimizer.apply(gradients, variables)
        return self.get_metrics_result()

    def test_step(self, data: tuple[Any, Any]) -> dict[str, Any]:
        """Measures loss and accuracy of a batch, as for `train_step`."""
        self.pair_loss(self._pairs(data), training=False)
        return self.get_metrics_result()

    def settle(self) -> None:
        """Brings the trigram tables up to date with the last update.

        Rows that a batch does not read are updated later, when they are read
        or here. `fit`, `evaluate`, `predict`, `save` and `export_models` do
        this by themselves. Only who calls `train_step` or `train_on_batch`
        without `fit`, or uses an encoder by itself, or
        `keras.saving.save_model`, from a callback within an epoch, has to.
        """
        if self.compiled and self._lazy:
            self.optimizer.settle()

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Saves the model, see `keras.Model.save`."""
        self.settle()
        super().save(*args, **kwargs)

    def save_weights(self, *args: Any, **kwargs: Any) -> None:
        """Saves the weights, see `keras.Model.save_weights`."""
        self.settle()
        super().save_weights(*args, **kwargs)

    def _pairs(self, data: tuple[Any, ...]) -> HashedPairs:
        return data[0] if is_hashed(data) else self._hash(*data)

    def _hashed(self, pairs: tf.data.Dataset) -> tf.data.Dataset:
        """Hashes in the dataset, unless replicas share out its strings."""
        if self.distribute_strategy.num_replicas_in_sync > 1:
            return pairs
        return self._hash.dataset(pairs)

    def _maybe_symbolic_build(self, **_: Any) -> None:
        # All weights exist already; Keras would look for shapes in the mean
        # of the replicas' batches, and strings have no mean.
        pass

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


class _Settle(keras.callbacks.Callback):
    """Lets the other callbacks see the exact weights after each epoch."""

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.model.settle()
