"""Two small towers, and a fit of them on a few pairs."""

from typing import Any

import keras

import keras_lstm_dssm as dssm

QUERIES = ["hex bolt", "wood glue", "drill", "lamp"] * 4
TITLES = ["steel hex bolt", "wood glue 8 oz", "drill kit", "desk lamp"] * 4


def two_tower(
    lazy: bool = True,
    shared: bool = False,
    negatives: str = "in_batch",
    **options: Any,
) -> dssm.TwoTower:
    """The same weights each time; DSSM is the quickest to trace."""
    keras.utils.set_random_seed(5)
    query = dssm.DSSMEncoder([3])
    document = query if shared else dssm.DSSMEncoder([3])
    model = dssm.TwoTower(query, document, negatives=negatives)
    model.compile(
        dssm.NesterovMomentum(0.1, lazy=lazy), dssm.CosineSoftmax(), **options
    )
    return model


def fit(model: dssm.TwoTower, epochs: int = 1, **options: Any) -> Any:
    return model.fit(
        QUERIES, TITLES, epochs=epochs, batch_size=3, verbose=0, **options
    )
