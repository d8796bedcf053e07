"""Gradients of R(Q, D) by every parameter against central differences."""

from collections.abc import Iterator

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm import TwoTower
from keras_lstm_dssm.text.word_hashing import TRIGRAMS
from tests import reference
from tests.encoders.small import ENCODERS, RANDOM, small_encoder

QUERY, DOCUMENT = "hotels in shanghai", "hotel shanghai in 2 inns hotel"
STEP = 1e-5

pytestmark = pytest.mark.usefixtures("float64")


def entries(variable: keras.Variable, text: str) -> Iterator[tuple[int, ...]]:
    """Indices of all entries of a weight, of a table one for each word."""
    if variable.shape[0] != TRIGRAMS:
        yield from np.ndindex(*variable.shape)
        return
    for word in reference.split(text):
        row = RANDOM.choice(reference.trigrams(word))
        yield row, RANDOM.integers(variable.shape[1])


@pytest.mark.parametrize("name", ENCODERS)
def test_equal_central_differences(name):
    model = TwoTower(small_encoder(name), small_encoder(name))
    pair = tf.constant([QUERY]), tf.constant([DOCUMENT])
    variables = model.trainable_variables
    with tf.GradientTape() as tape:
        cosine = model(pair)
    gradients = tape.gradient(cosine, [v.value for v in variables])
    value = tf.function(lambda: model(pair)[0]).get_concrete_function()

    count = len(model.query_encoder.trainable_variables)
    assert len(variables) == 2 * count
    for number, (variable, gradient) in enumerate(
        zip(variables, gradients, strict=True)
    ):
        text = QUERY if number < count else DOCUMENT
        gradient_array = tf.convert_to_tensor(gradient).numpy()
        start = variable.numpy()
        for entry in entries(variable, text):
            ends = []
            for sign in (1, -1):
                moved = start[entry] + sign * STEP
                variable.value[entry].assign(moved)
                ends.append(value().numpy())
            variable.value[entry].assign(start[entry])
            slope = (ends[0] - ends[1]) / (2 * STEP)
            assert gradient_array[entry] == pytest.approx(
                slope, rel=1e-5, abs=1e-8
            )
        if len(gradient_array) == TRIGRAMS:
            words = reference.split(text)
            touched = {
                row for word in words for row in reference.trigrams(word)
            }
            rows = np.flatnonzero(np.any(gradient_array, axis=1))
            assert set(rows) <= touched
            # The CLSM's maximum leaves some words without any gradient.
            assert "clsm" in name or set(rows) == touched
