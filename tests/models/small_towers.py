"""Two small towers, and a fit of them on a few pairs."""

from typing import Any

import keras
import tensorflow as tf

import keras_lstm_dssm as dssm

QUERIES = ["hex bolt", "wood glue", "drill", "lamp"] * 4
TITLES = ["steel hex bolt", "wood glue 8 oz", "drill kit", "desk lamp"] * 4


def two_tower(
    lazy: bool = True, shared: bool = False, negatives: str = "in_batch",
    units: int = 3, rate: float = 0.1, loss: Any = None, n: int = 4,
    dtype: str = "float32", **options: Any,
) -> dssm.TwoTower:  # fmt: skip
    """The same weights each time; DSSM is the quickest to trace."""
    keras.utils.set_random_seed(5)
    query = dssm.DSSMEncoder([units], dtype=dtype)
    document = query if shared else dssm.DSSMEncoder([units], dtype=dtype)
    model = dssm.TwoTower(query, document, negatives=negatives, n=n)
    optimizer = dssm.NesterovMomentum(rate, lazy=lazy)
    model.compile(optimizer, loss or dssm.CosineSoftmax(), **options)
    return model


def fit(model: dssm.TwoTower, epochs: int = 1, **options: Any) -> Any:
    return model.fit(
        QUERIES, TITLES, epochs=epochs, batch_size=3, verbose=0, **options
    )


def one_batch(*parts: Any) -> tf.data.Dataset:
    """Returns a dataset of one batch: queries, titles, and a dict of extras."""
    return tf.data.Dataset.from_tensors(parts)
