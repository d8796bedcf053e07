import numpy as np
import pytest

import keras_lstm_dssm as dssm
from tests.kit.equal import check_equal


def test_models_differ_by_any_weight():
    one, other = (dssm.DSSMEncoder([2, 2]) for _ in range(2))
    other.set_weights(one.get_weights())
    check_equal(one, other)
    weight = other.weights[-1]
    weight.assign(weight + np.float32(1e-3))
    check_equal(one, other, atol=1.1e-3)
    for wrong, atol in ((other, 0.0), (other, 9e-4)):
        with pytest.raises(AssertionError, match="Mismatched elements: "):
            check_equal(one, wrong, atol)
    with pytest.raises(ValueError, match="shorter"):
        check_equal(one, one.get_weights()[:-1])
