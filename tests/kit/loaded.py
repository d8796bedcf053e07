"""Trained models that a process loads once, with the graphs they have traced.

Loading a run takes 0.4 seconds of a processor, and the first call of what was
loaded as long again: a program that a test runs would pay for both.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from keras_lstm_dssm import run_folder

Loaded = dict[tuple[Any, ...], tuple[Any, bytes]]
"""What determines a model -> the model, and the digest of its weights."""


def weights_digest(model: Any) -> bytes:
    """Returns a hash of all weights."""
    digest = hashlib.sha256()
    for weight in model.weights:
        digest.update(np.ascontiguousarray(weight))
    return digest.digest()


@contextmanager
def remembered_runs(loaded: Loaded) -> Iterator[None]:
    """Lets `RunFolder.load_model` return the models of equal files.

    A model whose weights were changed meanwhile is loaded again, and
    checkpoints, from which a training goes on, always are.
    """
    load_safely = run_folder.load_safely

    def load(path: str | PathLike[str]) -> Any:
        if Path(path).name != "model.keras":
            return load_safely(path)
        key = (
            hashlib.sha256(Path(path).read_bytes()).digest(),
            keras.config.dtype_policy().name,
            keras.config.floatx(),
        )
        model, digest = loaded.get(key, (None, b""))
        if model is None or weights_digest(model) != digest:
            model = load_safely(path)
            loaded[key] = model, weights_digest(model)
        return model

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_folder, "load_safely", load)
        yield
