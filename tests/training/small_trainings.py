"""Recipes that are quick to train, and callbacks that watch or stop it."""

from typing import Any

import keras
import numpy as np

from keras_lstm_dssm import PRESETS, Recipe

PAPER = PRESETS["dssm"].replace(
    encoder_config={"units": [3]}, epochs=2, batch_size=16
)
"""Like the presets of the paper: two separate towers, random negatives."""

BEST = (
    PRESETS["best"]
    .with_encoder(cells=2, bag=2, sketch=3)
    .replace(epochs=2, mine_every=1, batch_size=32, learning_rate=0.1)
)
"""Like `best`: adapted, with synthetic pairs and mined negatives, which are
mined before the second epoch."""

QUICK = Recipe("DSSMEncoder", {"units": [3]}, epochs=3, batch_size=16)
"""The quickest to trace; of lazily updated rows, too."""


class StopAt(keras.callbacks.Callback):
    """Presses ctrl-c after a training step, counted from 1."""

    def __init__(self, step: int) -> None:
        super().__init__()
        self.step = step

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if int(self.model.optimizer.iterations.numpy()) == self.step:
            raise KeyboardInterrupt


class EpochWeights(keras.callbacks.Callback):
    """Keeps the weights of each epoch, counted from 1."""

    def __init__(self) -> None:
        super().__init__()
        self.of: dict[int, list[np.ndarray]] = {}

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.of[epoch + 1] = self.model.get_weights()
