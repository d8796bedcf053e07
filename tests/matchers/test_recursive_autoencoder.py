"""Recursive autoencoder against plain Python, one text at a time."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.matchers.recursive_autoencoder import (
    TREES,
    RecursiveAutoencoder,
    balanced_children,
)
from tests.matchers import ragged_texts

LENGTHS = [7, 5, 4, 2, 1]
WIDTH = 3

pytestmark = pytest.mark.usefixtures("float64")


def small_autoencoder(tree: str = "greedy") -> RecursiveAutoencoder:
    autoencoder = RecursiveAutoencoder(WIDTH, tree, max_words=9)
    ragged_texts.randomise(autoencoder)
    return autoencoder


def word_vectors(lengths: list[int] = LENGTHS) -> np.ndarray:
    return ragged_texts.word_sequences(lengths, WIDTH, seed=1).vectors.numpy()


def parent(rae: RecursiveAutoencoder, *pair: Any) -> np.ndarray:
    weights, bias = np.array(rae.encoder_kernel), np.array(rae.encoder_bias)
    return np.tanh(weights.T @ np.concatenate(pair) + bias)


def decode(rae: RecursiveAutoencoder, node: Any) -> tuple[Any, Any]:
    weights, bias = np.array(rae.decoder_kernel), np.array(rae.decoder_bias)
    both = np.tanh(weights.T @ node + bias)
    return both[:WIDTH], both[WIDTH:]


def plain_error(rae: RecursiveAutoencoder, *pair: Any) -> float:
    back = np.concatenate(decode(rae, parent(rae, *pair)))
    return np.sum((np.concatenate(pair) - back) ** 2)


def greedy_tree(rae: RecursiveAutoencoder, words: Any) -> list[Any]:
    """Lists the nodes (vector, left node, right node), words first."""
    nodes: list[Any] = [(word, None, None) for word in words]
    row = list(range(len(words)))
    while len(row) > 1:
        errors = [
            plain_error(rae, nodes[one][0], nodes[other][0])
            for one, other in zip(row, row[1:], strict=False)
        ]
        i = int(np.argmin(errors))
        one, other = row[i : i + 2]
        row[i : i + 2] = [len(nodes)]
        vector = parent(rae, nodes[one][0], nodes[other][0])
        nodes.append((vector, one, other))
    return nodes


def halved_tree(rae: RecursiveAutoencoder, words: Any) -> list[Any]:
    nodes: list[Any] = [(word, None, None) for word in words]

    def build(ids: list[int]) -> int:
        if len(ids) == 1:
            return ids[0]
        half = -(-len(ids) // 2)
        one, other = build(ids[:half]), build(ids[half:])
        vector = parent(rae, nodes[one][0], nodes[other][0])
        nodes.append((vector, one, other))
        return len(nodes) - 1

    build(list(range(len(words))))
    return nodes


TRANSCRIPTIONS = {"greedy": greedy_tree, "balanced": halved_tree}


def unfolding_error(rae: RecursiveAutoencoder, nodes: list[Any]) -> float:
    def below(node: int, decoded: np.ndarray) -> float:
        word, one, other = nodes[node]
        if one is None:
            return np.sum((word - decoded) ** 2)
        first, second = decode(rae, decoded)
        return below(one, first) + below(other, second)

    return sum(
        below(number, vector)
        for number, (vector, one, _) in enumerate(nodes)
        if one is not None
    )


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("lengths", [LENGTHS, [3, 3], [1, 1], [9]])
def test_nodes_and_errors_equal_plain_python(tree, lengths):
    rae, vectors = small_autoencoder(tree), word_vectors(lengths)
    time = vectors.shape[1]
    arguments = tf.constant(vectors), tf.constant(lengths)
    nodes = tf.function(rae.call)(*arguments).numpy()
    errors = tf.function(rae.unfolding_error)(*arguments).numpy()
    trees = rae.trees(*arguments)
    assert nodes.shape == (len(lengths), 2 * time - 1, WIDTH)
    for text, length in enumerate(lengths):
        expected = TRANSCRIPTIONS[tree](rae, vectors[text, :length])
        inner = slice(time, time + length - 1)
        places = [*range(length), *range(time, time + length - 1)]
        np.testing.assert_allclose(
            nodes[text, places], [node for node, *_ in expected], rtol=1e-12
        )
        assert not np.any(np.delete(nodes[text], places, axis=0))
        children = [
            [child if child < length else child - length + time for child in x]
            for _, *x in expected[length:]
        ]
        merged = trees.children.numpy()[text]
        np.testing.assert_array_equal(
            merged[: length - 1], np.reshape(children, (-1, 2))
        )
        assert not merged[length - 1 :].any()
        assert (trees.slots.numpy()[text, inner][:-1] >= 0).all()
        assert errors[text] == pytest.approx(
            unfolding_error(rae, expected), rel=1e-12
        )
    assert (errors > 0).tolist() == [length > 1 for length in lengths]


def test_greedy_trees_differ_from_balanced_ones():
    """The vectors above decide on trees of several shapes."""
    rae, vectors = small_autoencoder(), word_vectors([9] * 40)
    children = rae.trees(tf.constant(vectors), tf.fill([40], 9)).children
    shapes = {row.tobytes() for row in children.numpy()}
    assert len(shapes) > 20
    assert balanced_children(9)[9].tobytes() not in shapes


@pytest.mark.parametrize("tree", TREES)
def test_gradient_equals_central_differences(tree):
    rae = small_autoencoder(tree)
    texts = tf.constant(word_vectors([5, 2, 1])), tf.constant([5, 2, 1])
    gradients = ragged_texts.check_central_differences(
        tf.function(lambda: tf.reduce_sum(rae.unfolding_error(*texts))),
        [weight.value for weight in rae.variables],
    )
    assert all(gradient.all() for gradient in gradients)
