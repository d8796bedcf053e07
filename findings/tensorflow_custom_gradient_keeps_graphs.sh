#!/usr/bin/env bash
# tensorflow 2.21.0; Python 3.11, Linux; run on 2026-11-28.
# A function with `tf.custom_gradient` is used in a `tf.function`, and the
# `tf.function` is deleted.
# Expected: its graph is freed, as the graph of a `tf.function` without a custom
# gradient is.
# Seen: no graph is freed. Each tracing registers the gradient under a new name in
# TensorFlow's registry, which is never emptied and refers to the graph. A process
# that builds model after model (a search over hyperparameters, a test suite, a
# server that loads versions) grows with each of them.
# Exit code: 0 while this is so, 1 if it has changed, 2 if the set-up failed.
set -u
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT && cd "$work" || exit 2
python3 -m venv env || exit 2
env/bin/pip install --quiet tensorflow==2.21.0 || exit 2
export TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES=
cat > check.py <<'END'
import gc
import sys
import weakref

import tensorflow as tf


@tf.custom_gradient
def square(x):
    return x * x, lambda upstream: 2 * x * upstream


def kept(function, times=5):
    """Counts the graphs that outlive the functions they were traced for."""
    graphs = []
    for _ in range(times):
        traced = tf.function(lambda x: function(x)).get_concrete_function(
            tf.TensorSpec([], tf.float32)
        )
        graphs.append(weakref.ref(traced.graph))
        del traced
    gc.collect()
    return sum(graph() is not None for graph in graphs)


custom, plain = kept(square), kept(tf.square)
print("graphs kept of 5: with a custom gradient", custom, "without", plain)
sys.exit(not (custom == 5 and plain == 0))
END
env/bin/python check.py
