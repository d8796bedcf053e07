"""Convolutions over texts of different lengths, against plain loops."""

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.layers.convolution import (
    MaskedConvolution,
    fixed_time,
    masked_max_pool,
)
from tests.matchers import plain_convolutions as plain
from tests.matchers.ragged_texts import (
    check_central_differences,
    randomise,
    texts_of,
    with_junk,
    word_sequences,
)

LENGTHS = [6, 4, 3, 1]

pytestmark = pytest.mark.usefixtures("float64")


def small_convolution(padding: str, width: int) -> MaskedConvolution:
    layer = MaskedConvolution(4, width, padding, "tanh")
    layer.build((None, None, 3))
    randomise(layer)
    return layer


@pytest.mark.parametrize("width", [1, 2, 3])
def test_wide_equals_loops(width):
    layer, texts = small_convolution("wide", width), word_sequences(LENGTHS, 3)
    values, lengths = layer(texts.vectors, texts.lengths)
    np.testing.assert_array_equal(lengths, np.array(LENGTHS) + width - 1)
    assert values.shape == (4, 6 + width - 1, 4)
    for number, words in enumerate(texts_of(texts)):
        expected = np.tanh(
            plain.at_windows(plain.wide(words, width), *plain.weights_of(layer))
        )
        length = lengths[number]
        np.testing.assert_allclose(values[number, :length], expected, 1e-12)
        np.testing.assert_array_equal(values[number, length:], 0)

    longer = with_junk(texts, 2)
    again, _ = layer(longer.vectors, longer.lengths)
    np.testing.assert_allclose(again[:, :-2], values, rtol=1e-12)
    np.testing.assert_array_equal(again[:, -2:], 0)


@pytest.mark.parametrize("time", [5, 6, 9])  # 5 cuts a text
def test_narrow_equals_loops_with_the_gate(time):
    """g is computed as the paper writes it: 0 where the window is zero."""
    layer, texts = small_convolution("narrow", 3), word_sequences(LENGTHS, 3)
    fixed, lengths = fixed_time(texts.vectors, texts.lengths, time)
    assert fixed.shape == (4, time, 3)
    np.testing.assert_array_equal(lengths, np.minimum(LENGTHS, time))
    values, counts = layer(fixed, lengths)
    for number, words in enumerate(texts_of(texts)):
        padded = plain.fixed(words, time)
        np.testing.assert_array_equal(fixed[number], padded)
        windows = plain.at_windows(padded, *plain.weights_of(layer))
        g = [padded[i : i + 3].any() for i in range(time - 2)]
        expected = np.tanh(windows) * np.array(g)[:, np.newaxis]
        np.testing.assert_allclose(values[number], expected, rtol=1e-12)
        assert counts[number] == sum(g)


def test_maximum_of_two_leaves_padding_out():
    values = -np.arange(1.0, 11).reshape(2, 5, 1)  # negative: 0 would win
    pooled, lengths = masked_max_pool(
        tf.constant(values), tf.constant([5, 3], tf.int32)
    )
    np.testing.assert_array_equal(pooled[..., 0], [[-1, -3, -5], [-6, -8, 0]])
    np.testing.assert_array_equal(lengths, [3, 2])


@pytest.mark.parametrize("padding", ["wide", "narrow"])
def test_gradients(padding):
    layer, texts = small_convolution(padding, 2), word_sequences(LENGTHS, 3)
    vectors = tf.Variable(texts.vectors)
    convolution = layer.convolution

    def loss() -> tf.Tensor:
        pooled, _ = masked_max_pool(*layer(vectors, texts.lengths))
        return tf.reduce_sum(tf.sin(pooled))

    *_, gradient = check_central_differences(
        loss, [convolution.kernel.value, convolution.bias.value, vectors]
    )
    assert not gradient[~texts.mask.numpy()].any()
