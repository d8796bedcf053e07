#!/usr/bin/env bash
# keras 3.15.1 with tensorflow 2.21.0; Python 3.11, Linux; run on 2026-11-28.
# A `keras.Sequential` without `keras.Input` begins with a custom layer of strings,
# and `fit` gets a tensor of strings. The layer does not ask for its inputs to be
# converted (`autocast=False`).
# Expected: the model is built for the strings that it gets.
# Seen: the model is built for float32 and the first operation on strings raises
# TypeError. `Sequential` makes its input of the first layer's `compute_dtype`, not
# of the data's dtype; with `compute_dtype` overridden to "string" the same model
# trains.
# Exit code: 0 while this is so, 1 if it has changed, 2 if the set-up failed.
set -u
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT && cd "$work" || exit 2
python3 -m venv env || exit 2
env/bin/pip install --quiet tensorflow==2.21.0 keras==3.15.1 || exit 2
export TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES=
cat > check.py <<'END'
import sys

import keras
import numpy as np
import tensorflow as tf


class Lengths(keras.layers.Layer):
    def __init__(self):
        super().__init__(autocast=False)

    def call(self, texts):
        return tf.cast(tf.strings.length(texts), tf.float32)[:, None]

    def compute_output_shape(self, shape):
        return shape[0], 1


class StringLengths(Lengths):
    @property
    def compute_dtype(self):
        return "string"

    @property
    def variable_dtype(self):
        return "string"


def fits(layer):
    model = keras.Sequential([layer, keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    try:
        model.fit(tf.constant(["a", "b"]), np.zeros((2, 1)), verbose=0)
    except TypeError as error:
        print(str(error).splitlines()[2])
        return False
    return True


plain, with_dtype = fits(Lengths()), fits(StringLengths())
print("plain:", plain, "dtypes of strings:", with_dtype)
sys.exit(not (with_dtype and not plain))
END
env/bin/python check.py
