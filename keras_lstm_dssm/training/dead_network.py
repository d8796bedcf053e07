"""DeadNetworkWatch: stops a training that cannot learn any more."""

import math
from typing import Any

import keras

from keras_lstm_dssm.training.faults import DeadNetwork

_ROUNDING = 1e-5  # of Keras's float32 mean over an epoch


class DeadNetworkWatch(keras.callbacks.Callback):
    """Stops when the scores of all triples of an epoch are equal.

    If the relu units of the last hidden layer are 0 for every pair of texts,
    all pairs have one score and no weight but the bias has a gradient: the
    loss of each triple is the margin, its accuracy 0. The first epoch is no
    sign of it, because it starts with equal scores, and neither is the rest
    of an epoch that was interrupted.

    Args:
        margin: Margin of the hinge loss.
        steps: Training steps in a whole epoch.

    Raises:
        DeadNetwork: In `on_epoch_end`.
    """

    def __init__(self, margin: float, steps: int) -> None:
        super().__init__()
        self.margin = margin
        self.steps = steps

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Compares the epoch's loss with the margin."""
        if (
            epoch
            and self.params["steps"] == self.steps
            and logs["accuracy"] == 0
            and math.isclose(logs["loss"], self.margin, rel_tol=_ROUNDING)
        ):
            raise DeadNetwork(epoch + 1)
