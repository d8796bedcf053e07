"""ScoringMLP against NumPy."""

import numpy as np
import pytest

from keras_lstm_dssm.layers.scoring_mlp import ScoringMLP, small_uniform
from tests.matchers.plain_convolutions import mlp
from tests.matchers.ragged_texts import randomise

pytestmark = pytest.mark.usefixtures("float64")
FEATURES = np.random.default_rng(0).normal(size=(5, 4))


@pytest.mark.parametrize("hidden", [[], [3], [3, 2]])
def test_equals_numpy_and_starts_at_zero(hidden):
    layer = ScoringMLP(hidden, "tanh")
    np.testing.assert_array_equal(layer(FEATURES), np.zeros(5))
    for dense in layer.dense:
        assert 0 < np.abs(dense.kernel).max() <= 0.1
    randomise(layer)
    expected = [mlp(layer, row) for row in FEATURES]
    np.testing.assert_allclose(layer(FEATURES), expected, rtol=1e-12)


def test_each_initializer_draws_its_own_values():
    one, other = (small_uniform()((40, 50)) for _ in range(2))
    assert not np.array_equal(one, other)
    assert 0.09 < np.abs(one).max() <= 0.1
