"""TwoTower: a query encoder and a document encoder trained together."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.encoders import CombinedEncoder, TextEncoder
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.layers import cosine_pairs
from keras_lstm_dssm.models.negatives import (
    in_batch,
    log_q_of_distinct,
    random_negatives,
)
from keras_lstm_dssm.models.pair_batches import pair_batches
from keras_lstm_dssm.models.pair_hasher import (
    HashedPairs,
    PairHasher,
    is_hashed,
)
from keras_lstm_dssm.models.presets import preset_encoder
from keras_lstm_dssm.registry import register

NEGATIVES = ("random", "in_batch")

NOT_FINITE = "TwoTower: the loss is NaN or infinite; train with a smaller step"
"""What the error says, an `InvalidArgumentError`, that stops `fit` then."""


@register
class TwoTower(keras.Model):
    """Two encoders with their own parameters, trained on clicks.

    Palangi et al. 2016, Fig. 3. `fit` takes a `tf.data.Dataset` of batches
    `(query, document)`, string tensors `(batch,)`, or two lists of texts.
    A batch may have a third part, a dict: `negatives`, strings `(batch, k)`,
    titles to be told from the clicked one beside those that the model takes
    by itself (`GivenNegatives` makes them); `log_q`, float `(batch, 1 + k)`,
    for the correction for frequency (`ClickFrequencies` makes it).

    Args:
        query_encoder: Encoder of queries, parameters Lambda_Q.
        document_encoder: Encoder of document titles, Lambda_D; the same
            object for both ties the towers.
        negatives: `"random"`, `n` documents drawn for each query (the
            paper's); or `"in_batch"`, all other documents of the batch.
        n: Negatives a query, for `"random"`.
        seed: Of the draws.

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
        super().__init__(**kwargs)
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
        self._hash = PairHasher(query_encoder, document_encoder)
        self._accuracy = keras.metrics.Mean(name="accuracy")
        self._convert_input_args = False
        self._allow_non_tensor_positional_args = True
        self.built = True

    @classmethod
    def from_preset(
        cls,
        preset: str,
        negatives: str = "random",
        n: int = 4,
        seed: int = 0,
        equal_start: bool = False,
        tied: bool = False,
        **kwargs: Any,
    ) -> "TwoTower":
        """Makes both towers of a preset.

        Args:
            preset: A name in `PRESETS`, such as `"lstm_96"`.
            negatives: See the class.
            n: See the class.
            seed: See the class.
            equal_start: Whether both towers start from the same random
                weights. Their vectors are then alike before any training
                where the texts share trigrams, which helps most when clicks
                are few.
            tied: Whether one encoder serves for both, so that what a click
                teaches of a word in the query holds in titles, too.
            **kwargs: Arguments of both encoders that override the preset's,
                such as `oov_buckets`.

        Raises:
            InputError: There is no such preset.
        """
        if tied:
            encoder = preset_encoder(preset, name="encoder", **kwargs)
            return cls(encoder, encoder, negatives, n, seed)
        query = preset_encoder(preset, name="query_encoder", **kwargs)
        document = preset_encoder(preset, name="document_encoder", **kwargs)
        if equal_start:
            document.set_weights(query.get_weights())
        return cls(query, document, negatives, n, seed)

    @property
    def tied(self) -> bool:
        """Whether one encoder serves for queries and documents."""
        return self.query_encoder is self.document_encoder

    @property
    def _towers(self) -> list[TextEncoder]:
        both = [self.query_encoder, self.document_encoder]
        return both[:1] if self.tied else both

    @property
    def adapts(self) -> bool:
        """Whether `adapt` is to be called before training."""
        return any(isinstance(t, CombinedEncoder) for t in self._towers)

    def adapt(self, titles: Sequence[str]) -> None:
        """Tells encoders that want to know how rare words are in titles.

        Args:
            titles: The titles, each of them once.
        """
        for tower in self._towers:
            if isinstance(tower, CombinedEncoder):
                tower.adapt(titles)

    def call(self, inputs: tuple[Any, Any]) -> tf.Tensor:
        """Cosine of each query with the document beside it."""
        query, document = inputs
        return cosine_pairs(
            self.query_encoder(query), self.document_encoder(document)
        )

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
                "TwoTower has its own metrics, loss and accuracy; measure "
                "rankings with keras_lstm_dssm.evaluation"
            )
        self.settle()  # rows that another optimizer has left behind
        super().compile(
            optimizer=optimizer, loss=loss, jit_compile=jit_compile, **kwargs
        )
        self.optimizer.build(self.trainable_variables)
        if hasattr(self.optimizer, "set_groups"):
            self.optimizer.set_groups(
                [tower.trainable_variables for tower in self._towers]
            )
        # Replicas read rows of their own: there the update stays dense.
        self._lazy = (
            getattr(self.optimizer, "lazy", False)
            and self.distribute_strategy.num_replicas_in_sync == 1
        )
        if self._lazy:
            self.optimizer.set_tables(
                [table for tower in self._towers for table in tower.tables]
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
                    self._towers, (pairs.query, pairs.document), strict=False
                )
                for table in tower.tables
            ]
            self.optimizer.look_ahead(variables, rows)
        elif hasattr(self.optimizer, "look_ahead"):
            self.optimizer.look_ahead(variables)
        with tf.GradientTape() as tape:
            loss = self.optimizer.scale_loss(self._loss(pairs, training=True))
        gradients = tape.gradient(loss, [v.value for v in variables])
        # One number looked at, in the graph: it costs nothing.
        finite = tf.debugging.assert_all_finite(loss, NOT_FINITE)
        with tf.control_dependencies([finite]):
            self.optimizer.apply(gradients, variables)
        return self.get_metrics_result()

    def test_step(self, data: tuple[Any, Any]) -> dict[str, Any]:
        """Measures loss and accuracy of a batch, as for `train_step`."""
        self._loss(self._pairs(data), training=False)
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

    def _loss(self, pairs: HashedPairs, training: bool) -> tf.Tensor:
        query, document = pairs.query, pairs.document
        clicked, given = document.text_index, pairs.negatives
        if self.tied:  # all texts are in both
            both = self.query_encoder.compose(query, training)
            places = tf.concat([clicked[:, tf.newaxis], given], axis=1)
            distinct, index = tf.unique(tf.reshape(places, [-1]))
            places = tf.reshape(index, tf.shape(places))
            clicked, given = places[:, 0], places[:, 1:]
            vectors = (
                tf.gather(both, query.text_index),
                tf.gather(both, distinct),
            )
        else:
            vectors = (
                self.query_encoder(query, training=training),
                self.document_encoder.compose(document, training),
            )
        if self.negatives == "in_batch":
            cosines, labels = in_batch(*vectors, clicked)
        else:
            # A function of the update, so that a resumed run draws as the
            # whole one; Keras does not save the state of a generator. What
            # is measured has draws of its own, the same each time.
            update = tf.cast(self.optimizer.iterations.value, tf.int32)
            update = update if training else tf.constant(-1)
            cosines, labels = random_negatives(
                *vectors, clicked, given, self.n, tf.stack([self.seed, update])
            )
        scores = cosines
        if pairs.log_q is not None:
            places = tf.concat([clicked[:, tf.newaxis], given], axis=1)
            scores -= self._log_q(pairs.log_q, places, tf.shape(cosines)[1])
        loss = self.compute_loss(y=labels, y_pred=scores)
        # Keras divides by the number of replicas for the gradients' sum.
        replicas = self.distribute_strategy.num_replicas_in_sync
        self._loss_tracker.update_state(
            loss * replicas, sample_weight=tf.size(clicked)
        )
        best = tf.reduce_max(tf.where(labels == 0, cosines, -2.0), axis=-1)
        own = tf.reduce_sum(tf.where(labels > 0, cosines, 0.0), axis=-1)
        self._accuracy.update_state(own > best)
        return loss

    def _log_q(
        self, log_q: tf.Tensor, places: tf.Tensor, distinct: tf.Tensor
    ) -> tf.Tensor:
        """What the loss is to take off the cosines, `(distinct,)`."""
        gamma = getattr(self.loss, "gamma", None)
        if self.negatives != "in_batch" or gamma is None:
            raise InputError(
                "log_q corrects CosineSoftmax with in-batch negatives; got "
                f"negatives={self.negatives!r} and {self.loss!r}"
            )
        return log_q_of_distinct(log_q, places, distinct) / gamma

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

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        serialize = keras.saving.serialize_keras_object
        shared = self.document_encoder is self.query_encoder
        return {
            "name": self.name,
            "query_encoder": serialize(self.query_encoder),
            # `None`: one encoder is both towers.
            "document_encoder": None
            if shared
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


class _Settle(keras.callbacks.Callback):
    """Lets the other callbacks see the exact weights after each epoch."""

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.model.settle()
