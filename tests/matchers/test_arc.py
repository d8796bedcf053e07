"""ARC-I and ARC-II against NumPy, one pair at a time."""

import functools
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm import InputError
from keras_lstm_dssm.matchers.arc import ARCI, ARCII
from keras_lstm_dssm.settings.presets import ARC_I_OF_WAN, ARC_II_OF_WAN
from tests.matchers import plain_convolutions as plain
from tests.matchers.ragged_texts import (
    check_gradients,
    check_saving,
    check_scores,
    check_start,
    pairs,
    randomise,
    texts_of,
)

pytestmark = pytest.mark.usefixtures("float64")

# The longest query has 7 words, so that 6 cuts it and 12 pads all texts.
ARC_I: dict[str, dict[str, Any]] = {
    "cut": {"filters": [2, 3], "width": 2, "max_words": 6},
    "padded": {"filters": [3, 2], "hidden": [], "max_words": 12},
    "no_bias": {"filters": [4], "use_bias": False, "max_words": 8},
    "tanh": {"filters": [3, 2], "activation": "tanh", "max_words": 11},
    "wan": {**ARC_I_OF_WAN, "filters": [2, 3]},
}
ARC_II: dict[str, dict[str, Any]] = {
    "cut": {"filters": [3], "width": 2, "max_words": 6},
    "padded": {"filters": [3, 2], "max_words": 12},
    "deep": {"filters": [2, 2, 3], "width": 2, "max_words": 11, "hidden": []},
    "wan": {**ARC_II_OF_WAN, "filters": [3], "max_words": 9},
}


@functools.cache
def arc_i(form: str) -> ARCI:
    matcher = ARCI(3, **{"hidden": [6], **ARC_I[form]})
    randomise(matcher)
    return matcher


@functools.cache
def arc_ii(form: str) -> ARCII:
    matcher = ARCII(3, **{"hidden": [6], **ARC_II[form]})
    randomise(matcher)
    return matcher


@pytest.mark.parametrize("form", ARC_I)
def test_arc_i_equals_numpy(form):
    matcher = arc_i(form)

    def features(stack: Any, words: np.ndarray) -> np.ndarray:
        if matcher.pooling == "windows":
            return plain.window_pooling(stack, words)
        return plain.k_max_maps(stack, words)[-1].ravel()

    def score(query: np.ndarray, document: np.ndarray) -> float:
        both = [
            features(matcher.query_stack, query),
            features(matcher.document_stack, document),
        ]
        return plain.mlp(matcher.mlp, np.concatenate(both))

    check_scores(matcher, score)


def first_layer(
    matcher: ARCII, query: np.ndarray, document: np.ndarray
) -> np.ndarray:
    """One convolution over the concatenation of both windows, cell by cell.

    `[windows of the query, windows of the document, filters]`, the cells of
    a padding window 0.
    """
    texts = [plain.fixed(t, matcher.max_words) for t in (query, document)]
    counts = [min(len(t), matcher.max_words) for t in (query, document)]
    width = matcher.width
    if matcher.padding == "wide":
        texts = [plain.wide(text, width) for text in texts]
        counts = [count + width - 1 for count in counts]
    kernels = [plain.weights_of(layer)[0] for layer in matcher.first]
    size = len(texts[0]) - width + 1
    weights = np.concatenate([k.reshape(-1, k.shape[2]) for k in kernels])
    cells = np.zeros([size, size, matcher.filters[0]])
    for i, j in np.ndindex(*np.minimum(counts, size)):
        windows = [*texts[0][i : i + width], *texts[1][j : j + width]]
        bias = matcher.first[0].convolution.bias.numpy()
        cells[i, j] = plain.relu(np.concatenate(windows) @ weights + bias)
    return cells


def squares_of_two(cells: np.ndarray) -> np.ndarray:
    by_row = plain.halves(cells)
    return plain.halves(by_row.swapaxes(0, 1)).swapaxes(0, 1)


@pytest.mark.parametrize("form", ARC_II)
def test_arc_ii_equals_numpy(form):
    matcher = arc_ii(form)

    def score(query: np.ndarray, document: np.ndarray) -> float:
        cells = first_layer(matcher, query, document)
        real = [
            min(
                min(len(text), matcher.max_words)
                + (matcher.width - 1) * (matcher.padding == "wide"),
                len(cells),
            )
            for text in (query, document)
        ]
        cells = squares_of_two(cells)
        for layer in matcher.convolutions:
            convolved = plain.relu(
                plain.at_squares(cells, layer.kernel.numpy(), layer.bias)
            )
            real = [min((n + 1) // 2, len(convolved)) for n in real]
            cells = np.zeros_like(convolved)
            cells[: real[0], : real[1]] = convolved[: real[0], : real[1]]
            cells = squares_of_two(cells)
        return plain.mlp(matcher.mlp, cells.ravel())

    check_scores(matcher, score)


def test_arc_ii_sum_of_convolutions_is_one_of_the_concatenation():
    """`represent` and an outer sum give the first maximum of ARC-II."""
    matcher = arc_ii("padded")
    texts = pairs(3)
    query = matcher.represent(texts[0], "query")
    document = matcher.represent(texts[1], "document")
    for number, words in enumerate(zip(*map(texts_of, texts), strict=True)):
        expected = squares_of_two(first_layer(matcher, *words))
        sums = query.values[number][:, None] + document.values[number][None]
        rows, columns = query.lengths[number], document.lengths[number]
        np.testing.assert_allclose(
            tf.nn.relu(sums)[:rows, :columns],
            expected[:rows, :columns],
            rtol=1e-12,
        )
        assert not expected[rows:].any() and not expected[:, columns:].any()
        assert expected[:rows, :columns].any()


@pytest.mark.parametrize("form", ["cut", "wan"])
def test_arc_i_gradients(form):
    check_gradients(arc_i(form))


@pytest.mark.parametrize("form", ["padded", "wan"])
def test_arc_ii_gradients(form):
    check_gradients(arc_ii(form))


def test_saving(tmp_path):
    arguments: dict[str, Any] = {
        "word_dimension": 3,
        "filters": [2, 3],
        "width": 2,
        "hidden": [4, 2],
        "max_words": 9,
    }
    more = {"activation": "tanh", "use_bias": False, "pooling": "k_max"}
    check_saving(ARCI, arguments | more, tmp_path)
    check_saving(ARCII, arguments | {"padding": "wide"}, tmp_path)


def test_start():
    check_start(ARCI(3, filters=[4, 4], hidden=[5]))
    check_start(ARCII(3, filters=[4, 4], hidden=[5]))


def test_sizes_of_the_paper_and_of_wan():
    assert ARCI().mlp.dense[0].kernel.shape == (2 * 11 * 200, 200)
    assert ARCI(**ARC_I_OF_WAN).mlp.dense[0].kernel.shape == (100, 200)
    assert ARCI(**ARC_I_OF_WAN).count_params() == (
        4 * 3 * 50 * 50 + 100 * 200 + 200 + 200 + 1
    )
    assert ARCII().mlp.dense[0].kernel.shape == (5 * 5 * 50, 200)
    assert ARCII(**ARC_II_OF_WAN).count_params() == (
        2 * 3 * 50 * 30 + 30 + 26 * 26 * 30 * 60 + 60 + 60 + 1
    )


def test_wrong_arguments():
    with pytest.raises(InputError, match="pooling must be .* not 'mean'"):
        ARCI(pooling="mean")
    with pytest.raises(InputError, match="5 positions are too few for 2 conv"):
        ARCI(max_words=5)
    with pytest.raises(InputError, match="filters must have a number"):
        ARCI(filters=[])
    with pytest.raises(InputError, match="filters must have a number"):
        ARCII(filters=[])
    with pytest.raises(InputError, match="9 positions are too few for 3 conv"):
        ARCII(max_words=9)
