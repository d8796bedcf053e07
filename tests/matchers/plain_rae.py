"""Scores of RAE by NumPy, from the nodes of one pair of texts at a time."""

from typing import Any

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.matchers.rae import RAE

SIZE = 5
NUMBERS = [2, 3, 5]  # ids of words that are numbers


def nodes_of(matcher: RAE, vectors: np.ndarray) -> np.ndarray:
    """The nodes of one text; test_recursive_autoencoder.py proves them."""
    one = tf.constant(vectors)[tf.newaxis], tf.constant([len(vectors)])
    return matcher.autoencoder(*one)[0].numpy()


def pool(one: np.ndarray, other: np.ndarray, size: int) -> np.ndarray:
    """Takes minima of size x size rectangles, as Socher et al. published."""
    matrix = np.linalg.norm(one[:, None] - other[None], axis=-1)
    for axis in (0, 1):
        while matrix.shape[axis] < size:
            matrix = np.repeat(matrix, 2, axis)
        least, larger = divmod(matrix.shape[axis], size)
        sizes = [least] * (size - larger) + [least + 1] * larger
        parts = np.split(matrix, np.cumsum(sizes)[:-1], axis)
        matrix = np.stack([part.min(axis) for part in parts], axis)
    return matrix


def numbers_of(words: np.ndarray) -> set[int]:
    return set(words.tolist()) & set(NUMBERS)


def pool_score(matcher: RAE, query: Any, document: Any) -> float:
    one, other = (
        nodes_of(matcher, vectors) for vectors, _ in (query, document)
    )
    entries = np.clip((pool(one, other, SIZE) - 1.5) / (3 * 0.25), -1, 1)
    x, y = numbers_of(query[1]), numbers_of(document[1])
    difference = abs(len(query[1]) - len(document[1]))
    inputs = [
        *(0.1 + 0.4 * (entries.ravel() + 1)),
        x == y,
        bool(x) and x == y,
        x <= y or y <= x,
        (difference - 2.0) / 1.75,
    ]
    layer = matcher.mlp.score
    return (
        np.array(inputs) @ np.array(layer.kernel) + np.array(layer.bias)
    ).item()


def root_score(matcher: RAE, query: Any, document: Any) -> float:
    roots = [nodes_of(matcher, vectors)[-1] for vectors, _ in (query, document)]
    (hidden,) = matcher.mlp.dense
    kernel, bias = np.array(hidden.kernel), np.array(hidden.bias)
    r = np.maximum(np.concatenate(roots) @ kernel + bias, 0)
    layer = matcher.mlp.score
    return (r @ np.array(layer.kernel) + np.array(layer.bias)).item()


SCORES = {"pool": pool_score, "root": root_score}
