"""PairModel: `fit`, `evaluate` and `predict` on pairs of texts."""

import sys
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.layers.synced_weights import SyncAtEpochEnd
from keras_lstm_dssm.models.hashed_model import is_empty
from keras_lstm_dssm.models.pair_batches import pair_batches, split_pairs
from keras_lstm_dssm.models.pair_steps import PairSteps
from keras_lstm_dssm.private_api import replica_count


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


class PairModel(PairSteps):
    """Base of `TwoTower`: `fit`, `evaluate` and `predict` on pairs of texts.

    Pairs are given as a dataset or as two lists of texts.

    Rows of the trigram tables that a batch does not read are updated later
    (`LazyRows`). They are brought up to date before the weights are read:
    by `encode`, `get_weights`, saving, `evaluate`, `predict`, exporting and
    a direct call. Within an epoch, call `sync_weights()` from a callback
    before your own `tf.function` or functional model uses an encoder, and
    before you read a variable itself.
    """

    weights_hint = "repeat the pairs that are to count more"

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
            tf.errors.InvalidArgumentError: The loss is NaN or infinite, or the
                parts of a batch have different numbers of rows.
        """
        self._refuse(class_weight=class_weight, sample_weight=sample_weight)
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
            self._refuse(sample_weight=weights[0] if weights else None)
            size = kwargs.pop("validation_batch_size", None) or batch_size
            validation_data = self._hashed(
                pair_batches(queries, documents, size, shuffle_seed=self.seed)
            )
        seed = self.seed + self._steps_done() if shuffle else None
        pairs = self._batches(x, y, batch_size, seed)
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
            return self._fit(
                pairs,
                callbacks,
                epochs=epochs,
                verbose=verbose,
                validation_data=validation_data,
                **kwargs,
            )
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
        self._refuse(sample_weight=sample_weight)
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
        if is_empty(pairs):  # Keras would raise UnboundLocalError
            return np.zeros(0, self.compute_dtype)
        return super().predict(self._hashed(pairs), verbose=verbose, **kwargs)

    def _batches(
        self,
        x: Any,
        y: Any = None,
        batch_size: int | None = None,
        shuffle_seed: int | None = None,
    ) -> tf.data.Dataset:
        return pair_batches(x, y, batch_size, shuffle_seed, reshuffle=True)
