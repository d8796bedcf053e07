"""ValidationLoss: the loss of documents that are not trained on."""

import tensorflow as tf

from keras_lstm_dssm.private_api import replica_count
from keras_lstm_dssm.training.best_epoch import BestEpoch


class ValidationLoss(BestEpoch):
    """Measures the loss after epochs, keeps the best weights, stops early.

    The figures are those of `evaluate` with `val_` before their names, such
    as `val_loss`, of which the smallest is the best. See `BestEpoch` for the
    attributes.

    Args:
        batches: Dataset of batches of texts, as for `evaluate` of the model.
        every: Measure every n epochs, and after the last one. Default 1.
        keep_best: Whether the weights of the best epoch replace those of the
            last one when the training ends. Default `True`.
        patience: Number of evaluations without a smaller loss after which
            the training stops; `None`, the default, never stops it.

    Raises:
        InputError: A number is below 1.

    Example:
    >>> loss = ValidationLoss(examples.in_order(32), patience=3)
    >>> model.fit(batches, epochs=40, callbacks=[loss])
    >>> loss.best_epoch
    12
    """

    def __init__(
        self,
        batches: tf.data.Dataset,
        every: int = 1,
        keep_best: bool = True,
        patience: int | None = None,
    ) -> None:
        super().__init__(every, keep_best, patience)
        self.batches = batches
        self._hashed: tf.data.Dataset | None = None

    @property
    def name(self) -> str:
        """Name of the loss in the logs."""
        return "val_loss"

    def figures(self) -> dict[str, float]:
        """Measures the loss and the other metrics of the model."""
        if self._hashed is None:  # each dataset traces the hashing anew
            self._hashed = (
                self.model.hasher.dataset(self.batches)
                if replica_count(self.model) == 1
                else self.batches
            )
        values = self.model.evaluate(self._hashed, verbose=0, return_dict=True)
        return {f"val_{name}": float(value) for name, value in values.items()}

    def is_better(self, figure: float, best: float) -> bool:
        """Returns whether a loss is smaller than the best one so far."""
        return figure < best
