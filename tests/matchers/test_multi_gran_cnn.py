"""MultiGranCNN against NumPy, one pair at a time."""

import functools
from typing import Any

import numpy as np
import pytest

from keras_lstm_dssm import InputError
from keras_lstm_dssm.layers.interactions import PhraseSimilarity
from keras_lstm_dssm.matchers.multi_gran_cnn import MultiGranCNN
from keras_lstm_dssm.settings.presets import MULTI_GRAN_CNN_OF_WAN
from tests import reference
from tests.matchers import plain_convolutions as plain
from tests.matchers.ragged_texts import (
    check_gradients,
    check_saving,
    check_scores,
    check_start,
    randomise,
)

pytestmark = pytest.mark.usefixtures("float64")

SMALL = {"sizes": [4, 3], "match_filters": [2], "hidden": [6]}
FORMS: dict[str, dict[str, Any]] = {
    "paper": SMALL,
    "two_maps": {**SMALL, "sizes": [5, 3, 2], "match_filters": [2, 3]},
    "direct": {**SMALL, "similarity": "direct", "blocks": 2, "width": 2},
    "concat": {**SMALL, "similarity": "concat"},
    "wan": {**MULTI_GRAN_CNN_OF_WAN, "hidden": [6], "sizes": [6]},
}


@functools.cache
def multi_gran_cnn(form: str) -> MultiGranCNN:
    matcher = MultiGranCNN(3, **FORMS[form])
    randomise(matcher)
    return matcher


def similarity(
    layer: PhraseSimilarity, one: np.ndarray, other: np.ndarray
) -> float:
    if layer.kind == "direct":
        return np.exp(-np.sum((one - other) ** 2) / (2 * layer.beta))
    W = layer.kernel.numpy()
    if layer.kind == "indirect":
        value = one @ W @ other
    else:
        value = W.ravel() @ np.concatenate([one, other])
    value += layer.bias.numpy() if layer.use_bias else 0
    if layer.activation == "relu":
        return max(0, value)
    return reference.sigmoid(value)


@pytest.mark.parametrize("form", FORMS)
def test_equals_numpy(form):
    matcher = multi_gran_cnn(form)

    def score(query: np.ndarray, document: np.ndarray) -> float:
        phrases = [
            np.concatenate([words, *plain.k_max_maps(stack, words)])
            for stack, words in zip(
                matcher.stacks, [query, document], strict=True
            )
        ]
        layer = matcher.phrase_similarity
        cells = np.array(
            [[similarity(layer, g1, g2) for g2 in phrases[1]]
             for g1 in phrases[0]]
        )[:, :, None]  # fmt: skip
        cells = plain.plain_pooling(cells, matcher.sizes[0])
        for convolution, size in zip(
            matcher.convolutions, matcher.sizes[1:], strict=True
        ):
            around = np.pad(cells, [[1, 1], [1, 1], [0, 0]])
            kernel, bias = convolution.kernel.numpy(), convolution.bias.numpy()
            cells = np.tanh(plain.at_squares(around, kernel, bias))
            cells = plain.plain_pooling(cells, size)
        return plain.mlp(matcher.mlp, cells.ravel())

    check_scores(matcher, score)


@pytest.mark.parametrize("form", ["paper", "direct", "concat", "wan"])
def test_gradients(form):
    check_gradients(multi_gran_cnn(form))


def test_saving(tmp_path):
    arguments = {
        "word_dimension": 3,
        "blocks": 2,
        "width": 2,
        "activation": "relu",
        "use_bias": False,
        "k_min": 2,
        "similarity": "concat",
        "similarity_activation": "tanh",
        "sizes": [5, 3],
        "match_filters": [2],
        "hidden": [4, 2],
    }
    check_saving(MultiGranCNN, arguments, tmp_path)


def test_start():
    check_start(MultiGranCNN(3, hidden=[5]))


def test_sizes():
    of_wan = 2 * 3 * 3 * 50 * 50 + 50 * 50 + 15 * 15 * 200 + 200 + 200 + 1
    assert MultiGranCNN(**MULTI_GRAN_CNN_OF_WAN).count_params() == of_wan
    assert MultiGranCNN().mlp.dense[0].kernel.shape == (2 * 2 * 50, 200)


def test_wrong_arguments():
    with pytest.raises(InputError, match="one number more .* 1 and 3"):
        MultiGranCNN(sizes=[15])
    with pytest.raises(InputError, match="kind must be .* not 'dot'"):
        MultiGranCNN(similarity="dot")
    with pytest.raises(InputError, match="activation must be .* not 'gelu'"):
        MultiGranCNN(similarity_activation="gelu")
    with pytest.raises(InputError, match="beta must be greater than 0, not 0"):
        PhraseSimilarity(3, beta=0)
