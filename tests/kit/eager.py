"""Lets models train without graphs.

Tracing the graph of a step takes longer than a few steps without it.
"""

import functools
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from keras_lstm_dssm.models.text_model import TextModel


@contextmanager
def eager_steps() -> Iterator[None]:
    """Compiles models of all kinds so that their steps run eagerly."""
    eagerly = functools.partialmethod(TextModel.compile, run_eagerly=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TextModel, "compile", eagerly)
        yield
