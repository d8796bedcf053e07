"""CNTN against NumPy, one pair at a time."""

import functools
from typing import Any

import numpy as np
import pytest

from keras_lstm_dssm import InputError
from keras_lstm_dssm.matchers.cntn import CNTN
from keras_lstm_dssm.settings.presets import CNTN_OF_WAN
from tests.matchers import plain_convolutions as plain
from tests.matchers.ragged_texts import (
    check_gradients,
    check_saving,
    check_scores,
    check_start,
    randomise,
)

pytestmark = pytest.mark.usefixtures("float64")

# One word and width 2 give two positions, fewer than k_top: filled with 0.
FORMS: dict[str, dict[str, Any]] = {
    "paper": {"width": 2, "k_top": 4, "dimension": 3},
    "deep": {"filters": [2, 3, 2], "k_top": 2, "k_min": 3, "slices": 1},
    "no_dense": {"k_top": 3, "dimension": None, "use_bias": False},
    "wan": CNTN_OF_WAN,
}


@functools.cache
def cntn(form: str) -> CNTN:
    arguments = {"dimension": 4, "slices": 2, **FORMS[form]}
    if len(arguments.get("filters", ())) != 3:
        arguments["filters"] = [3, 2]
    matcher = CNTN(3, **arguments)
    randomise(matcher)
    return matcher


@pytest.mark.parametrize("form", FORMS)
def test_equals_numpy(form):
    matcher = cntn(form)
    tensor, projection, bias, combination = (
        weight.numpy()
        for weight in (
            matcher.tensor,
            matcher.projection,
            matcher.bias,
            matcher.combination,
        )
    )

    def score(query: np.ndarray, document: np.ndarray) -> float:
        v = []
        for number, words in enumerate([query, document]):
            maps = plain.k_max_maps(matcher.stacks[number], words)
            v.append(maps[-1].ravel())
            if matcher.dense:
                dense = matcher.dense[number]
                kernel = dense.kernel.numpy()
                v[-1] = np.tanh(v[-1] @ kernel + dense.bias.numpy())
        slices = np.array([v[0] @ slice_ @ v[1] for slice_ in tensor])
        hidden = slices + np.concatenate(v) @ projection + bias
        return combination @ np.tanh(hidden)

    check_scores(matcher, score)


@pytest.mark.parametrize("form", ["paper", "wan"])
def test_gradients(form):
    check_gradients(cntn(form))


def test_saving(tmp_path):
    arguments = {
        "word_dimension": 3,
        "filters": [2, 3],
        "width": 2,
        "use_bias": False,
        "k_top": 2,
        "k_min": 3,
        "dimension": 4,
        "slices": 2,
    }
    check_saving(CNTN, arguments, tmp_path)


def test_start():
    check_start(CNTN(3, filters=[4, 4], dimension=5))


def test_sizes():
    of_wan = 4 * 3 * 50 * 50 + 5 * (50 * 50 + 2 * 50 + 1 + 1)
    assert CNTN(**CNTN_OF_WAN).count_params() == of_wan
    of_side = 2 * (3 * 50 * 50 + 50) + 10 * 50 * 200 + 200
    assert CNTN().count_params() == 2 * of_side + 5 * (200 * 200 + 402)


def test_wrong_arguments():
    with pytest.raises(InputError, match="slices must be at least 1, not 0"):
        CNTN(slices=0)
    with pytest.raises(InputError, match="dimension must be .* not 0"):
        CNTN(dimension=0)
    with pytest.raises(InputError, match="k_top and k_min must be .* not 0"):
        CNTN(k_top=0)
