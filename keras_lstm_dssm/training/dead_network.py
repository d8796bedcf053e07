"""DeadNetworkWatch: stops a training that cannot learn any more."""

import math
from typing import Any

import keras

from keras_lstm_dssm.training.faults import DeadNetwork

_TOLERANCE = 1e-4
_FEW = 0.25  # the accuracy of random scores is 0.5


class DeadNetworkWatch(keras.callbacks.Callback):
    """Stops when the scores of nearly all triples of an epoch are equal.

    If the relu units of the last hidden layer are 0 for every pair of texts,
    or its tanh units are 1 or -1, all pairs have one score and hardly a weight
    has a gradient: the loss of each triple is the margin, its accuracy 0. A
    few pairs may still differ by rounding. The first epoch is no sign of it,
    because it starts with equal scores, and neither is the rest of an epoch
    that was interrupted.

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
            and logs["accuracy"] < _FEW
            and math.isclose(logs["loss"], self.margin, rel_tol=_TOLERANCE)
        ):
            raise DeadNetwork(epoch + 1)
