"""Skip-Thought trained without a graph."""

import functools

import keras
import pytest

from keras_lstm_dssm.papers.skip_thought import SkipThought


def train_eagerly(patch: pytest.MonkeyPatch) -> None:
    """Trains eagerly: of a few batches, tracing takes most of the time."""
    compile_eagerly = functools.partialmethod(
        keras.Model.compile, run_eagerly=True
    )
    patch.setattr(SkipThought, "compile", compile_eagerly)
