"""SyncedWeights: weights are brought up to date before they are read."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np


class SyncedWeights(keras.layers.Layer):
    """Base of layers and models some of whose rows are updated lazily.

    An optimizer that updates a table's rows when a batch reads them
    (`LazyRows`) sets `before_read` to a function that brings all rows up to
    date. It is called before the weights are read or replaced as a whole: by
    `get_weights`, `set_weights`, saving and loading.

    Attributes:
        before_read: Function called without arguments by `sync_weights`.
            Default `None`: all weights are up to date.

    Example:
    >>> encoder.before_read = optimizer.sync
    >>> weights = encoder.get_weights()  # after `optimizer.sync()`
    """

    before_read: Callable[[], None] | None = None

    def sync_weights(self) -> None:
        """Bring lazily updated rows of the tables up to date."""
        if self.before_read is not None:
            self.before_read()

    def get_weights(self) -> list[np.ndarray]:
        """Return all weights, up to date, see `keras.layers.Layer`."""
        self.sync_weights()
        return super().get_weights()

    def set_weights(self, weights: list[np.ndarray]) -> None:
        """Replace all weights, see `keras.layers.Layer`."""
        self.sync_weights()  # a pending update would change the new rows
        super().set_weights(weights)

    def save_own_variables(self, store: Any) -> None:
        """Save the variables, up to date, see `keras.layers.Layer`.

        Keras calls it for a model before the layers and the optimizer inside
        it, so that all of them are saved after the same training step.
        """
        self.sync_weights()
        super().save_own_variables(store)

    def load_own_variables(self, store: Any) -> None:
        """Load the variables, see `keras.layers.Layer`."""
        self.sync_weights()
        super().load_own_variables(store)


class SyncAtEpochEnd(keras.callbacks.Callback):
    """Brings all weights of a model up to date at the end of each epoch."""

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Update the rows that no batch has read."""
        self.model.sync_weights()
