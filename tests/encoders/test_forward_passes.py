"""Every encoder against NumPy, from raw strings, in double precision."""

import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from tests.encoders.small import ENCODERS, by_numpy, small_encoder

TEXTS = [
    "Hotels in Shanghai", "a",
    "shanghai hotels accommodation hotel in shanghai discount", "",
    "Straße 上海 3x4", "Hotels in Shanghai",
]  # fmt: skip

pytestmark = pytest.mark.usefixtures("float64")


@pytest.mark.parametrize("name", ENCODERS)
def test_equals_numpy(name):
    encoder = small_encoder(name)
    expected = np.array([by_numpy(encoder, text) for text in TEXTS])
    np.testing.assert_allclose(
        encoder(tf.constant(TEXTS)), expected, rtol=1e-11, atol=1e-13
    )
    length = np.linalg.norm(expected, axis=1, keepdims=True)
    vectors = encoder.encode(TEXTS)
    assert vectors.dtype == np.float64
    np.testing.assert_allclose(vectors, expected / length, rtol=1e-11)


def test_strings_and_hashed_words_give_the_same():
    encoder = small_encoder("bilstm")
    hashed = dssm.LetterTrigrams().distinct(TEXTS)
    np.testing.assert_array_equal(encoder(TEXTS), encoder(hashed))


@pytest.mark.parametrize(("make", "message"), [
    (lambda: dssm.LSTMEncoder(0),
     "units is 0: expected a whole number of 1 or more"),
    (lambda: dssm.RNNEncoder(4, truncate=-1),
     "truncate is -1: expected a whole number of 0 or more"),
    (lambda: dssm.DSSMEncoder([]), r"units must be widths of .*, not \[\]"),
    (lambda: dssm.CLSMEncoder(window=2), "window must be odd .*, not 2"),
    (lambda: dssm.CombinedEncoder(2, 2, 63, length_norm=1.5),
     "length_norm must be from 0 to 1"),
    (lambda: dssm.RNNEncoder(0),
     "units is 0: expected a whole number of 1 or more"),
    (lambda: dssm.CLSMEncoder(filters=0),
     "filters is 0: expected a whole number of 1 or more"),
    (lambda: dssm.CLSMEncoder(units=-1),
     "units is -1: expected a whole number of 1 or more"),
    (lambda: dssm.CombinedEncoder(2, 0, 63),
     "bag is 0: expected a whole number of 1 or more"),
    (lambda: dssm.CombinedEncoder(2, 2, -1),
     "sketch is -1: expected a whole number of 0 or more"),
    (lambda: dssm.encoders.WordSumEncoder(0, 1, 2),
     "words is 0: expected a whole number of 1 or more"),
])  # fmt: skip
def test_encoders_that_cannot_be(make, message):
    with pytest.raises(dssm.InputError, match=message):
        make()
