"""Loading of `.keras` files that other people may have written.

The configuration of a model is text, and can ask for any number of cells.
Weights are therefore compared with the arrays of the file before they are made.
"""

import io
import math
import os
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import h5py
import keras

from keras_lstm_dssm.errors import InputError

_SMALL = 1 << 20
"""Weights of at most this many numbers (4 MB) are not compared."""

_MOST_BYTES = 1 << 30
"""Any file may ask for weights of this many bytes in all, 1 GB."""

_RATIO = 50
"""A file may ask for weights of this many times its size.

A table of trigrams has the rows that training has changed in the file, and all
rows in memory.
"""

_LOADING = threading.RLock()


def load_safely(path: str | os.PathLike[str]) -> Any:
    """Loads a model in Keras's safe mode: nothing in the file runs as code.

    Keras and h5py raise exceptions of their own for a damaged file.
    """
    with _weights_of_file(path):
        return keras.saving.load_model(path, safe_mode=True)


@contextmanager
def _weights_of_file(path: str | os.PathLike[str]) -> Iterator[None]:
    """Refuses models whose configuration asks for more memory than is stored.

    A configuration of a few bytes can name a layer of many gigabytes. While the
    `with` block loads the model, `InputError` is raised for a large weight
    that has no counterpart among the weights stored in the file.
    """
    rows = {shape[1:] for shape in _shapes(path)}
    most = max(_MOST_BYTES, _RATIO * os.path.getsize(path))
    made = 0
    thread = threading.get_ident()

    def checked(
        layer: keras.layers.Layer, shape: Any = None, *args: Any, **options: Any
    ) -> Any:
        nonlocal made
        if threading.get_ident() != thread:  # it builds a model of its own
            return add_weight(layer, shape, *args, **options)
        sizes = (shape,) if isinstance(shape, int) else tuple(shape or ())
        numbers = math.prod(sizes)
        made += 4 * numbers
        # A table has fewer rows in the file than in memory.
        if made > most or (numbers > _SMALL and sizes[1:] not in rows):
            raise InputError(
                f"found a {type(layer).__name__} with a weight of shape"
                f" {list(sizes)}, and no arrays of this size in the file"
            )
        return add_weight(layer, shape, *args, **options)

    # A weight is made as soon as its layer is built, by this method only. Of
    # two threads each would otherwise put back the method of the other.
    with _LOADING:
        add_weight = keras.layers.Layer.add_weight
        keras.layers.Layer.add_weight = checked
        try:
            yield
        finally:
            keras.layers.Layer.add_weight = add_weight


def _shapes(path: str | os.PathLike[str]) -> set[tuple[int, ...]]:
    """Returns the shapes of the arrays in a `.keras` file."""
    shapes: set[tuple[int, ...]] = set()

    def add(_: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            shapes.add(item.shape)

    with zipfile.ZipFile(path) as archive:
        content = io.BytesIO(archive.read("model.weights.h5"))
    with h5py.File(content, "r") as file:
        file.visititems(add)
    return shapes
