"""A model that was used by another test is as a new one."""

from typing import Any

import keras
import numpy as np
import pytest

import keras_lstm_dssm as dssm
from tests.kit.warm import WarmModels, state
from tests.models.small_towers import QUERIES, TITLES, fit, two_tower


def results(model: Any) -> list[Any]:
    """What a training leaves: history, weights, optimizer, measurements."""
    history = fit(model, epochs=2, validation_data=(TITLES, QUERIES)).history
    return [
        *history.values(),
        *(variable.numpy() for variable in state(model)),
        model.evaluate(QUERIES, TITLES, verbose=0),
        model.predict(QUERIES, TITLES, verbose=0),
    ]


@pytest.mark.parametrize("negatives", ["in_batch", "random"])
def test_as_a_new_one(negatives, monkeypatch):
    """Bit for bit, and without tracing anything."""
    models = WarmModels()
    with models.lent() as take:
        used = take(two_tower, negatives=negatives)
        other = take(two_tower, negatives=negatives)
        assert other is not used
        results(used)
        fit(used, epochs=1)
        used.stop_training = True
        other.query_encoder.trainable = False
    expected = results(two_tower(negatives=negatives))
    monkeypatch.setattr(dssm.TwoTower, "batch_loss", None)
    monkeypatch.setattr(dssm.TwoTower, "call", None)
    keras.utils.set_random_seed(0)  # as before each test
    with models.lent() as take:
        model = take(two_tower, negatives=negatives)
        assert model is used
        for found, value in zip(results(model), expected, strict=True):
            np.testing.assert_array_equal(found, value)
    monkeypatch.undo()
    # The one with a frozen layer was not lent again.
    with models.lent() as take:
        lent = [take(two_tower, negatives=negatives) for _ in range(2)]
        assert used in lent and other not in lent
        used.compile(dssm.NesterovMomentum(0.1), dssm.CosineSoftmax())
    with models.lent() as take:
        lent = [take(two_tower, negatives=negatives) for _ in range(2)]
        assert used not in lent
        assert take(two_tower, negatives=negatives, lazy=False) not in lent
