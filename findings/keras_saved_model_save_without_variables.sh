#!/usr/bin/env bash
# keras 3.15.1 with tensorflow 2.21.0; Python 3.11, Linux; run on 2026-11-28.
# `tf.saved_model.save(model, folder)` of a stock Keras model, and the folder is read
# by the loader of sessions, which C++ programs and TensorFlow Serving use, too.
# Expected: the signature `serving_default` gives what the model gives, as after
# `model.export(folder)`.
# Seen: saving and loading end without an error. The call of the signature fails:
# "Could not find variable", since the loader restores no variables.
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


def call(folder):
    graph = tf.Graph()
    with graph.as_default(), tf.compat.v1.Session(graph=graph) as session:
        loaded = tf.compat.v1.saved_model.load(session, ["serve"], folder)
        signature = loaded.signature_def["serving_default"]
        (source,), (result,) = (
            [tensor.name for tensor in tensors.values()]
            for tensors in (signature.inputs, signature.outputs)
        )
        return session.run(result, {source: np.ones((1, 3), np.float32)})


model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
expected = model.predict(np.ones((1, 3), np.float32), verbose=0)
model.export("exported", verbose=False)
tf.saved_model.save(model, "saved")
exported_is_right = np.allclose(call("exported"), expected)
try:
    call("saved")
except tf.errors.FailedPreconditionError as error:
    saved = error.message.split(".")[0].splitlines()[-1]
else:
    saved = "answers"
print("export:", exported_is_right, "- tf.saved_model.save:", saved)
sys.exit(not (exported_is_right and "Could not find variable" in saved))
END
env/bin/python check.py
