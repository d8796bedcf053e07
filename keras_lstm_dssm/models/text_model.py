"""`TextModel`, the base class of models, and `Hasher`, which hashes batches."""

import os
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.errors import (
    NOT_FINITE,
    InputError,
    check_export_format,
    check_keras_file,
    check_precision,
)
from keras_lstm_dssm.optimizers.nesterov_momentum import NesterovMomentum
from keras_lstm_dssm.private_api import (
    BuiltModel,
    DirectedMean,
    accept_any_inputs,
    check_one_replica,
    is_distributed,
    shares_strategy,
)

# In a distributed dataset, an empty tensor of this dtype stands for `None`.
_MARKER_DTYPE = tf.uint8


class Hasher:
    """Base class of objects that hash batches of texts."""

    hashed: type
    """The class of a hashed batch."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Hashes a batch's texts, such as queries and documents."""
        raise NotImplementedError(f"{type(self).__name__}.__call__")

    def dataset(
        self, batches: tf.data.Dataset, untrained: bool = False
    ) -> tf.data.Dataset:
        """Hashes a dataset's batches, unless they are hashed already.

        With `untrained`, `PairHasher.dataset` also computes the untrained
        columns of the texts' vectors, see `CombinedEncoder`. Other hashers
        ignore `untrained`.
        """
        if is_hashed(batches.element_spec, self.hashed):
            return batches
        return hashed_in_parallel(batches, self)


def is_hashed(spec: Any, hashed: type) -> bool:
    """Returns whether a spec describes batches of the class `hashed`."""
    return isinstance(spec, tuple) and isinstance(spec[0], hashed)


def hashed_in_parallel(
    batches: tf.data.Dataset, hash_batch: Callable[..., Any]
) -> tf.data.Dataset:
    """Hashes the batches of a dataset in parallel with the training steps."""

    # AutoGraph would take 0.3 s to convert this function, and change nothing.
    @tf.autograph.experimental.do_not_convert
    def in_tuple(*batch: Any) -> tuple[Any]:
        # Without a tuple, Keras would use a batch's fields as x, y and weights.
        return (hash_batch(*batch),)

    return batches.map(in_tuple, num_parallel_calls=tf.data.AUTOTUNE).prefetch(
        tf.data.AUTOTUNE
    )


def is_string_batch(spec: Any) -> bool:
    """Returns whether a spec describes strings `[batch]`."""
    return (
        isinstance(spec, tf.TensorSpec)
        and spec.dtype == tf.string
        and spec.shape.rank in (1, None)
    )


def check_three_lists(x: Any, parts: str, lists: str) -> None:
    """Raises `InputError` if the examples x are not three lists."""
    if not isinstance(x, Sequence) or isinstance(x, str) or len(x) != 3:
        raise InputError(
            f"expected a tf.data.Dataset of {parts} batches, or {lists} in a"
            f" tuple; got {type(x).__name__}"
            + (f" of {len(x)} parts" if isinstance(x, Sequence) else "")
        )


def check_rows(**parts: Any) -> Any:
    """Checks that all parts of a batch have the same number of rows.

    Raises `InputError` if static shapes differ. The returned operation raises
    `tf.errors.InvalidArgumentError` if the actual numbers differ.
    """
    message = "expected equal numbers of rows in the parts of a batch: found"
    counts = {name: part.shape[0] for name, part in parts.items()}
    if len({*counts.values()} - {None}) > 1:
        listed = ", ".join(f"{rows} {name}" for name, rows in counts.items())
        raise InputError(f"{message} {listed}")
    rows = tf.stack([tf.shape(part)[0] for part in parts.values()])
    return tf.Assert(
        tf.reduce_all(rows == rows[0]),
        [f"{message} {', '.join(parts)}:", rows],
        summarize=len(parts),
    )


def relative_weights(model: Any, weights: tf.Tensor | None) -> tf.Tensor | None:
    """Divides a batch's weights by their mean, unless losses are summed."""
    if weights is None or getattr(model.loss, "reduction", None) == "sum":
        return weights
    # The mean loss, which Keras computes, is then sum(w loss) / sum(w).
    return tf.math.divide_no_nan(weights, tf.reduce_mean(weights))


def sample_weights(weights: Any, rows: int) -> tf.Tensor:
    """Checks weights of examples and returns them as float32 `(rows,)`."""
    values = np.asarray(weights, np.float32)
    if values.shape != (rows,):
        raise InputError(
            f"sample_weight has the shape {values.shape}: expected ({rows},),"
            " a number for each example"
        )
    if not np.isfinite(values).all() or (values < 0).any():
        raise InputError(
            "sample_weight has numbers that are negative or not finite:"
            " expected 0 or more for each example"
        )
    return tf.constant(values)


def is_empty(batches: tf.data.Dataset) -> bool:
    """Returns whether a dataset is known to have no batches."""
    return bool(batches.cardinality() == 0)


def check_not_empty(batches: tf.data.Dataset) -> None:
    """Raises `InputError` if a dataset is known to have no batches."""
    if is_empty(batches):
        raise InputError("found no examples: expected at least one")


@tf.autograph.experimental.do_not_convert
def _with_markers(*batch: Any) -> Any:
    # Distributed datasets hold only tensors: a marker replaces `None`.
    marker = tf.zeros([0], _MARKER_DTYPE)
    return tf.nest.map_structure(
        lambda part: marker if part is None else part, batch
    )


def _is_marker(part: Any) -> bool:
    return tf.is_tensor(part) and part.dtype == _MARKER_DTYPE


class OneProcess:
    """Has the methods of `JointStep` for a process that trains alone."""

    def join(self, model: Any, batch: Any) -> Any:
        """Returns the batch; `JointStep` joins the batches of all workers."""
        return batch

    def share_titles(
        self, titles: Sequence[tf.Tensor], batch: Any
    ) -> Sequence[tf.Tensor]:
        """Returns the titles; `JointStep` adds other workers' titles."""
        return titles

    def all_clicked(self, batch: Any) -> tuple[tf.Tensor, Any]:
        """Returns all clicked titles, and where this process's titles begin."""
        return batch.candidates[:, 0], 0

    def sum(
        self, model: Any, batch: Any, loss: tf.Tensor, gradients: list[Any]
    ) -> tuple[tf.Tensor, list[Any]]:
        """Returns loss and gradients; `JointStep` sums them over workers."""
        return loss, gradients

    def weigh(self, loss: tf.Tensor, batch: Any) -> tf.Tensor:
        """Returns the loss; `JointStep` multiplies it by `JointBatch.share`."""
        return loss


class TextModel(BuiltModel):
    """Base class of the models `TwoTower`, `PairScorer` and `KeyVec`.

    A subclass implements `batch_loss`, `call` and `get_config`, and sets
    `batches_of` or overrides `_batches`.
    """

    kind: str  # the name of the `ModelKind`
    takes_metrics = False  # whether `compile` accepts further metrics
    given_metrics = False  # whether `compile` got further metrics
    own_metrics = "two metrics, loss and accuracy"
    rankings_hint: str  # in errors: how to measure rankings
    weights_hint: str  # in errors: what to give in place of labels or weights
    # Makes string batches from examples, a batch size and a shuffle seed.
    batches_of: Callable[..., tf.data.Dataset]
    train_function: Any
    exchange = OneProcess()  # communication with other processes

    def __init__(self, hasher: Hasher, seed: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        check_one_replica(self.distribute_strategy.num_replicas_in_sync)
        self.hasher = hasher
        self.seed = seed
        self._accuracy = DirectedMean("accuracy", grows=True)
        accept_any_inputs(self)
        self.built = True

    def sync_weights(self) -> None:
        """Applies pending updates of trigram tables (`LazyRows`), if any."""

    def fit_callbacks(self) -> list[keras.callbacks.Callback]:
        """Returns callbacks to run before the user's callbacks."""
        return []

    def batch_loss(self, batch: Any, training: bool) -> tf.Tensor:
        """Returns the loss of a hashed batch, and updates the metrics."""
        raise NotImplementedError(f"{type(self).__name__}.batch_loss")

    def compile(self, optimizer: Any, loss: Any, **kwargs: Any) -> None:
        """Sets any Keras optimizer and loss, see `keras.Model.compile`.

        `jit_compile` must be `False`. Only `TwoTower` accepts `metrics`.

        Raises:
            InputError: Metrics, XLA or half precision are requested, or the
                optimizer was made outside of the model's `tf.distribute`
                strategy.
        """
        check_precision(self)
        metrics = keras.tree.flatten(
            [kwargs.get("metrics"), kwargs.get("weighted_metrics")]
        )
        self.given_metrics = any(metrics)
        if self.given_metrics and not self.takes_metrics:
            raise InputError(
                f"the model has {self.own_metrics}, and takes no others; "
                f"{self.rankings_hint}"
            )
        if "accuracy" in metrics or "acc" in metrics:
            raise InputError(
                "accuracy is a metric of every TwoTower: leave it out"
            )
        if kwargs.pop("jit_compile", False) is True:
            raise InputError(
                "jit_compile=True is not supported: XLA has no string "
                "operations; leave it out"
            )
        super().compile(
            optimizer=optimizer, loss=loss, jit_compile=False, **kwargs
        )
        if isinstance(self.optimizer, keras.optimizers.LossScaleOptimizer):
            raise InputError(
                "mixed precision with loss scaling is not supported: use the "
                "dtype policy float32 or float64"
            )
        self._check_strategy()
        self.optimizer.build(self.trainable_variables)

    def fit(
        self,
        x: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: Any = "auto",
        callbacks: Any = None,
        validation_data: Any = None,
        shuffle: bool = True,
        **kwargs: Any,
    ) -> keras.callbacks.History:
        """Trains on a dataset of batches, or on lists in a tuple.

        Args:
            x: `tf.data.Dataset` of batches of examples, or a tuple of lists;
                see the model's class.
            batch_size: Number of examples in a batch, if x is lists. Default:
                128 triples for a `PairScorer`, 32 documents for a `KeyVec`.
            epochs: See `keras.Model.fit`.
            verbose: See `keras.Model.fit`.
            callbacks: See `keras.Model.fit`.
            validation_data: Examples like x, for an evaluation after each
                epoch.
            shuffle: Whether to shuffle lists, in a new order for each epoch.
                Default `True`.
            **kwargs: `initial_epoch`, `steps_per_epoch`, `validation_steps`
                and `validation_freq`, see `keras.Model.fit`. For lists of pairs
                or triples, also `sample_weight`: a number w of 0 or more for
                each example. The loss of a batch is sum(w loss) / sum(w).

        Returns:
            The history: the metrics of each epoch, see the model's class.

        Raises:
            InputError: x is neither a dataset of examples nor lists of equal
                length; labels, class weights or `validation_split` are given;
                or the model needs a call of `adapt` or `pretrain`.
            tf.errors.InvalidArgumentError: The loss is NaN or infinite, or the
                parts of a batch have different numbers of rows. The model's
                weights do not change in this training step.
        """
        self._check_ready()
        self._refuse(
            class_weight=kwargs.pop("class_weight", None),
            validation_split=kwargs.pop("validation_split", 0) or None,
        )
        if not isinstance(batch_size, int | np.integer | None):
            raise InputError(
                f"batch_size is {batch_size!r:.60}: expected a whole number"
            )
        # Each call of `fit` shuffles differently.
        seed = self.seed + self._steps_done() if shuffle else None
        batches = self._batches(
            x,
            y=kwargs.pop("y", None),
            batch_size=batch_size,
            shuffle_seed=seed,
            sample_weight=kwargs.pop("sample_weight", None),
        )
        if validation_data is not None:
            validation_data = self._hashed(
                self._batches(validation_data, batch_size=batch_size)
            )
        self._check_strategy()
        try:
            return super().fit(
                self._hashed(batches, training=True),
                epochs=epochs,
                verbose=verbose,
                callbacks=callbacks,
                validation_data=validation_data,
                shuffle=False,  # the dataset is shuffled already
                **kwargs,
            )
        except KeyboardInterrupt:
            if isinstance(callbacks, keras.callbacks.CallbackList):
                callbacks = callbacks.callbacks
            for callback in keras.tree.flatten(callbacks or []):
                getattr(callback, "on_interrupt", lambda: None)()
            raise

    def evaluate(
        self,
        x: Any = None,
        batch_size: int | None = None,
        verbose: Any = "auto",
        **kwargs: Any,
    ) -> Any:
        """Returns loss and metrics; for x and weights see `fit`."""
        weights = kwargs.pop("sample_weight", None)
        batches = self._hashed(
            self._batches(x, batch_size=batch_size, sample_weight=weights)
        )
        return super().evaluate(batches, verbose=verbose, **kwargs)

    def train_step(self, data: tuple[Any, ...]) -> dict[str, Any]:
        """Runs a training step on one batch."""
        batch = self.exchange.join(self, self._batch(data))
        variables = self.trainable_variables
        with tf.GradientTape() as tape:
            loss = self.optimizer.scale_loss(
                self.batch_loss(batch, training=True)
            )
        gradients = tape.gradient(loss, [v.value for v in variables])
        loss, gradients = self.exchange.sum(self, batch, loss, gradients)
        finite = tf.debugging.assert_all_finite(loss, NOT_FINITE)
        with tf.control_dependencies([finite]):
            self.optimizer.apply(gradients, variables)
        return self.get_metrics_result()

    def make_train_function(self, force: bool = False) -> None:
        """Makes a train function; between calls, variables hold the weights."""
        # While the train function runs, the variables hold the point where
        # Nesterov's method takes the gradient (Palangi et al. 2016, eq. 6).
        super().make_train_function(force)
        if nesterov := self._nesterov():
            self.train_function = nesterov.from_weights(
                self.train_function, self.steps_per_execution, self.run_eagerly
            )

    def test_step(self, data: tuple[Any, ...]) -> dict[str, Any]:
        """Updates the metrics with a batch."""
        if tf.executing_eagerly():
            self.sync_weights()
        self.batch_loss(self._batch(data), training=False)
        return self.get_metrics_result()

    def train_on_batch(
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        class_weight: Any = None,
        return_dict: bool = False,
    ) -> Any:
        """Runs one training step on all examples of lists.

        For many steps `fit` is faster. For x, y, `sample_weight` and errors see
        `fit`. `class_weight` must be `None`.
        """
        self._refuse(class_weight=class_weight)
        batch = self._only_batch(x, y, sample_weight)
        self.reset_metrics()  # Keras 3.12 does not reset them
        try:
            return super().train_on_batch(*batch, return_dict=return_dict)
        finally:
            self.sync_weights()

    def test_on_batch(
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        return_dict: bool = False,
    ) -> Any:
        """Returns the metrics of one batch, see `train_on_batch`."""
        batch = self._only_batch(x, y, sample_weight)
        self.sync_weights()
        self.reset_metrics()
        return super().test_on_batch(*batch, return_dict=return_dict)

    def predict_on_batch(self, x: Any, y: Any = None) -> Any:
        """Returns the predictions of one batch of pairs, see `predict`."""
        if y is None and isinstance(x, list | tuple) and len(x) == 2:
            x, y = x
        return self.predict(x, y, batch_size=max(1, len(x)), verbose=0)

    def export(
        self,
        filepath: str | os.PathLike[str],
        format: str = "tf_saved_model",
        verbose: bool = False,
        **options: Any,
    ) -> list[Path]:
        """Publishes the trained model for TF Serving, by `export_models`.

        The first export of two towers makes the folders `query_encoder/1` and
        `document_encoder/1` in `filepath`. The second export makes version 2.
        `format` must be `"tf_saved_model"`. With `verbose`, a progress bar is
        shown. `options` are arguments of `export_models`. Returns the folders
        of the new versions.

        Raises:
            InputError: `format` is not supported; see also `export_models`.

        Example:
        >>> model.export("models")
        [PosixPath('models/query_encoder/1'), ...]
        """
        from keras_lstm_dssm.export.export_models import export_models

        check_export_format(self, format)
        return export_models(self, filepath, progress=verbose, **options)

    def __dir__(self) -> list[str]:
        """Lists the attributes without the cached graphs."""
        # To save or load a model, Keras reads all attributes that `dir` lists.
        # Reading the graphs would trace them, which takes 0.7 s.
        return [
            name
            for name in super().__dir__()
            if not isinstance(getattr(type(self), name, None), cached_property)
        ]

    def save(self, filepath: Any, *args: Any, **kwargs: Any) -> None:
        """Saves the model as a `.keras` file, see `keras.Model.save`.

        Raises:
            InputError: `filepath` is an HDF5 file.
        """
        check_keras_file(filepath)
        super().save(filepath, *args, **kwargs)

    def get_compile_config(self) -> dict[str, Any] | None:
        """Returns the saved arguments of `compile`; `None` if not compiled."""
        if not self.compiled:
            return None
        serialize = keras.saving.serialize_keras_object
        config = super().get_compile_config()
        names = ("metrics", "weighted_metrics", "steps_per_execution")
        return {
            "optimizer": serialize(self.optimizer),
            "loss": serialize(self.loss),
            **{name: config[name] for name in names if config[name]},
        }

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compiles a loaded model with the saved arguments."""
        self.compile(**keras.saving.deserialize_keras_object(config))

    def _steps_done(self) -> int:
        return int(self.optimizer.iterations.numpy()) if self.compiled else 0

    def _check_ready(self) -> None:
        """Raises `InputError` if the model is not ready for training."""

    def _batches(
        self, x: Any, y: Any = None, **options: Any
    ) -> tf.data.Dataset:
        self._refuse(y=y, sample_weight=options.pop("sample_weight", None))
        return self.batches_of(x, **options)

    def _only_batch(
        self, x: Any, y: Any, sample_weight: Any = None
    ) -> tuple[Any, ...]:
        batches = self._batches(
            x, y, batch_size=2**31 - 1, sample_weight=sample_weight
        )
        check_not_empty(batches)
        return next(iter(batches))

    def _refuse(self, **arguments: Any) -> None:
        for name, value in arguments.items():
            if value is not None:
                raise InputError(
                    f"{name} is not supported: {self.weights_hint}"
                )

    def _nesterov(self) -> NesterovMomentum | None:
        # This is a method, because Keras would save a property with the model.
        optimizer = self.optimizer if self.compiled else None
        return optimizer if isinstance(optimizer, NesterovMomentum) else None

    def _check_strategy(self) -> None:
        if self.compiled and not shares_strategy(self, self.optimizer):
            raise InputError(
                "the model and its optimizer belong to different "
                "tf.distribute strategies: create both within the scope of "
                "the strategy that trains the model"
            )

    def _batch(self, data: tuple[Any, ...]) -> Any:
        data = tf.nest.map_structure(
            lambda part: None if _is_marker(part) else part, data
        )
        hashed = isinstance(data[0], self.hasher.hashed)
        return data[0] if hashed else self.hasher(*data)

    def _hashed(
        self, batches: tf.data.Dataset, training: bool = False
    ) -> tf.data.Dataset:
        check_not_empty(batches)
        batches = self.hasher.dataset(batches, untrained=training)
        if is_distributed(self):
            batches = batches.map(_with_markers)
        # With autotuning, some calls of `fit` would wait at the end for the
        # autotuner's sleeping thread.
        options = tf.data.Options()
        options.autotune.enabled = False
        return batches.with_options(options)

    def _record(
        self,
        loss: tf.Tensor,
        is_accurate: tf.Tensor,
        weights: tf.Tensor | None = None,
    ) -> None:
        # `loss` is the mean loss of a batch; `is_accurate` is bool `(batch,)`.
        (mean_loss,) = (m for m in self.metrics if m.name == "loss")
        total = (
            tf.size(is_accurate) if weights is None else tf.reduce_sum(weights)
        )
        mean_loss.update_state(loss, sample_weight=total)
        self._accuracy.update_state(is_accurate, sample_weight=weights)
