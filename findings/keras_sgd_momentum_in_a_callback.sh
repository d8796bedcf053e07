#!/usr/bin/env bash
# keras 3.15.1 with tensorflow 2.21.0; Python 3.11, Linux; run on 2026-11-28.
# A callback sets `optimizer.momentum` of `keras.optimizers.SGD` during `fit`.
# Expected: the next steps use the new momentum, as they use a new
# `optimizer.learning_rate`.
# Seen: the attribute reads back as set, and the training goes on with the momentum
# of the first step. The weights are equal, bit for bit, to a training without the
# callback. `momentum` is a Python number, read when the training step is traced.
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


class Set(keras.callbacks.Callback):
    """Sets a hyperparameter of the optimizer from the third batch on."""

    def __init__(self, name, value):
        super().__init__()
        self.name, self.value = name, value

    def on_train_batch_begin(self, batch, logs=None):
        if batch >= 2:
            setattr(self.model.optimizer, self.name, self.value)


def weights(callbacks):
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.layers.Dense(1)])
    optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
    model.compile(optimizer, "mse")
    x = np.random.RandomState(0).rand(64, 3)
    model.fit(x, x[:, :1], batch_size=4, verbose=0, callbacks=callbacks)
    return model.get_weights()[0]


plain = weights([])
no_momentum = weights([Set("momentum", 0.0)])
no_rate = weights([Set("learning_rate", 0.0)])
print("momentum set to 0 changes the weights:", not np.array_equal(plain, no_momentum))
print("learning_rate set to 0 does:", not np.array_equal(plain, no_rate))
as_described = np.array_equal(plain, no_momentum) and not np.array_equal(
    plain, no_rate
)
sys.exit(not as_described)
END
env/bin/python check.py
