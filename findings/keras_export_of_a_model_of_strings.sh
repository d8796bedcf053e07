#!/usr/bin/env bash
# keras 3.15.1 with tensorflow 2.21.0; Python 3.11, Linux; run on 2026-11-28.
# A subclassed `keras.Model` that reads strings is trained on a tensor of strings and
# exported with `model.export(folder)`.
# Expected: a signature that takes strings, or an error.
# Seen: the export ends without an error or a warning. The signature takes float32,
# so that no text can be sent to it. A functional model on
# `keras.Input((), dtype="string")` of the same layers has a signature of strings.
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


class Encoder(keras.Model):
    def __init__(self):
        super().__init__()
        self.words = keras.layers.TextVectorization(vocabulary=["hex", "bolt"])
        self.embedding = keras.layers.Embedding(4, 3)

    def call(self, texts):
        return tf.reduce_sum(self.embedding(self.words(texts)), axis=1)


def exported_type(model, folder):
    texts = tf.constant(["hex bolt", "bolt"])
    model.compile("sgd", "mse")
    model.fit(texts, np.zeros((2, 3)), verbose=0)
    model.export(folder, verbose=False)
    signature = tf.saved_model.load(folder).signatures["serving_default"]
    (spec,) = signature.structured_input_signature[1].values()
    return spec.dtype


encoder = Encoder()
texts = keras.Input((), dtype="string")
subclassed = exported_type(encoder, "subclassed")
functional = exported_type(keras.Model(texts, Encoder()(texts)), "functional")
print("subclassed:", subclassed, "functional:", functional)
sys.exit(not (subclassed == tf.float32 and functional == tf.string))
END
env/bin/python check.py
