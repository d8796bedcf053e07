"""RAE against NumPy, one pair at a time; what pre-training saves."""

import functools
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm import InputError, layers
from keras_lstm_dssm.matchers import rae
from keras_lstm_dssm.models.pair_scorer import PairScorer
from tests.kit.equal import check_equal
from tests.matchers.plain_convolutions import mlp, plain_pooling
from tests.matchers.ragged_texts import check_saved_scorer, check_scores

WIDTH, SIZE = 3, 5
NUMBERS = [2, 3, 5]  # ids of words that are numbers
TABLE = np.random.default_rng(9).normal(size=(7, WIDTH))


def small_matcher(head: str) -> rae.RAE:
    matcher = rae.RAE(
        WIDTH, head, size=SIZE, hidden=[4], max_words=9, numbers=4
    )
    random = np.random.default_rng(0)
    for weight in [
        *matcher.autoencoder.variables, *matcher.trainable_variables,
    ]:  # fmt: skip
        weight.assign(random.normal(size=weight.shape))
    matcher.statistics.assign([1.5, 0.25, 2.0, 1.75])
    matcher.number_words.assign([*NUMBERS, 2**31 - 1])
    return matcher


def sequences(lengths: list[int], seed: int) -> layers.WordSequences:
    """Draws texts of words 1 to 6, whose vectors are in `TABLE`."""
    words = np.random.default_rng(seed).integers(1, 7, (4, max(lengths)))
    words *= np.arange(max(lengths)) < np.array(lengths)[:, np.newaxis]
    vectors = TABLE[words] * (words > 0)[:, :, np.newaxis]
    return layers.WordSequences(
        tf.constant(vectors, keras.config.floatx()),
        tf.constant(lengths),
        tf.constant(words, tf.int32),
    )


def texts() -> tuple[layers.WordSequences, layers.WordSequences]:
    return sequences([6, 4, 2, 1], 1), sequences([9, 1, 4, 2], 2)


def nodes_of(matcher: rae.RAE, vectors: np.ndarray) -> np.ndarray:
    """The nodes of one text; test_recursive_autoencoder.py proves them."""
    one = tf.constant(vectors)[tf.newaxis], tf.constant([len(vectors)])
    return matcher.autoencoder(*one)[0].numpy()


def pool(one: np.ndarray, other: np.ndarray, size: int) -> np.ndarray:
    """Takes minima of size x size rectangles, as Socher et al. published."""
    matrix = np.linalg.norm(one[:, None] - other[None], axis=-1)
    for axis in (0, 1):
        while matrix.shape[axis] < size:
            matrix = np.repeat(matrix, 2, axis)
    return plain_pooling(matrix[:, :, np.newaxis], size, mode="min")[:, :, 0]


def pool_inputs(matcher: rae.RAE, query: Any, document: Any) -> np.ndarray:
    nodes = [nodes_of(matcher, TABLE[words]) for words in (query, document)]
    entries = np.clip((pool(*nodes, SIZE) - 1.5) / (3 * 0.25), -1, 1)
    x, y = (set(words.tolist()) & set(NUMBERS) for words in (query, document))
    return np.array([
        *(0.1 + 0.4 * (entries.ravel() + 1)), x == y, bool(x) and x == y,
        x <= y or y <= x, (abs(len(query) - len(document)) - 2.0) / 1.75,
    ])  # fmt: skip


def root_inputs(matcher: rae.RAE, query: Any, document: Any) -> np.ndarray:
    nodes = [nodes_of(matcher, TABLE[words]) for words in (query, document)]
    return np.concatenate([nodes[0][-1], nodes[1][-1]])


INPUTS = {"pool": pool_inputs, "root": root_inputs}


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("head", rae.HEADS)
def test_scores_equal_numpy_whatever_the_padding_and_the_batch(head):
    matcher = small_matcher(head)
    check_scores(
        matcher,
        lambda *words: mlp(matcher.mlp, INPUTS[head](matcher, *words)),
        texts(),
    )


@pytest.mark.parametrize("head", rae.HEADS)
def test_only_the_head_has_a_gradient(head):
    matcher = rae.RAE(WIDTH, head, size=SIZE)
    query, document = texts()
    weights = [variable.value for variable in matcher.trainable_variables]
    assert len(weights) == (4 if head == "root" else 2)
    watched = [
        query.vectors, document.vectors,
        *(v.value for v in matcher.autoencoder.variables),
    ]  # fmt: skip
    matcher.statistics.assign([1.0, 1.0, 1.0, 1.0])
    with tf.GradientTape() as tape:
        tape.watch(watched)
        scores = matcher(query, document)
    np.testing.assert_array_equal(scores, np.zeros(4))  # so the hinge is 1
    gradients = tape.gradient(scores, [*weights, *watched])
    assert all(gradient is None for gradient in gradients[len(weights) :])
    assert np.any(gradients[len(weights) - 2])  # by the last layer's kernel


def test_distances_of_equal_vectors_are_zero():
    vectors = (
        np.random.default_rng(0).normal(size=(2, 30, 50)).astype("float32")
    )
    found = rae.distances(tf.constant(vectors), tf.constant(vectors)).numpy()
    expected = np.linalg.norm(vectors[:, :, None] - vectors[:, None], axis=-1)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert not found[:, range(30), range(30)].any()


def test_sets_of_numbers():
    query = tf.constant([[7, 8, 7], [7, 8, 0], [0, 0, 0], [7, 0, 0], [0] * 3])
    document = tf.constant([[8, 7], [7, 7], [0, 0], [8, 0], [7, 0]])
    same, not_empty, subset = rae.same_numbers(query, document)
    assert same.numpy().tolist() == [True, False, True, False, False]
    assert not_empty.numpy().tolist() == [True, False, False, False, False]
    assert subset.numpy().tolist() == [True, True, True, False, True]


def test_phrases_are_nodes_and_numbers():
    # Words in the places 0 to 2, inner nodes from 3 on; by text.
    nodes = np.full((3, 5, 1), -9.0)  # past the end
    nodes[0, :, 0] = [1, 2, 3, 4, 5]  # three words
    nodes[1, [0, 1, 3], 0] = [6, 7, 8]  # two
    nodes[2, 0, 0] = 9  # one
    words = tf.constant([[7, 3, 12], [3, 3, 0], [8, 0, 0]])
    found = rae.phrases_of(
        tf.constant(nodes), tf.constant([3, 2, 1]), words, tf.constant([3, 12])
    )
    np.testing.assert_array_equal(
        found.nodes[:, :, 0],
        [[1, 2, 3, 4, 5], [6, 7, 8, 0, 0], [9, 0, 0, 0, 0]],
    )
    np.testing.assert_array_equal(found.lengths, [3, 2, 1])
    np.testing.assert_array_equal(
        found.numbers, [[0, 3, 12], [3, 3, 0], [0, 0, 0]]
    )


VOCABULARY = ["hex", "bolt", "12", "glue", "steel", "oz", "8"]
PAIRS = (
    ["hex bolt 12", "glue", "bolt steel hex", "8 oz glue steel bolt"] * 3,
    ["steel bolt 12", "glue 8 oz", "hex bolt", "glue oz 8"] * 3,
)


def vocabulary_vectors() -> layers.VocabularyVectors:
    words = layers.VocabularyVectors(VOCABULARY, 4)
    words.set_vectors(np.random.default_rng(0).normal(size=(7, 4)) / 2)
    return words


def trained_matcher(head: str = "pool", epochs: int = 1) -> rae.RAE:
    matcher = rae.RAE(4, head, size=4, hidden=[3], numbers=3, epochs=epochs)
    assert matcher.needs_pretraining
    matcher.pretrain(vocabulary_vectors(), *PAIRS, seed=5)
    assert not matcher.needs_pretraining
    return matcher


@functools.cache  # tracing the gradient takes seconds
def trained_weights() -> list[np.ndarray]:
    return trained_matcher().autoencoder.get_weights()


def pretrained(head: str) -> PairScorer:
    matcher = rae.RAE(4, head, size=4, hidden=[3], numbers=3)
    matcher.autoencoder.set_weights(trained_weights())
    matcher.statistics.assign([0.5, 0.5, 2.0, 1.0])
    matcher.pretrained.assign(1)
    return PairScorer(vocabulary_vectors(), matcher)


def test_pretraining_lowers_the_unfolding_error():
    words, matcher = vocabulary_vectors(), trained_matcher("root", 200)
    texts = words(words.distinct(PAIRS[0]))
    errors = []
    for weights in trained_weights(), matcher.autoencoder.get_weights():
        matcher.autoencoder.set_weights(weights)
        error = matcher.autoencoder.unfolding_error(
            texts.vectors, texts.lengths
        )
        errors.append(tf.reduce_sum(error))
    assert errors[1] < 0.6 * errors[0]


def test_pretraining_measures_numbers_and_distances():
    matcher, words = trained_matcher(), vocabulary_vectors()
    check_equal(matcher.autoencoder, trained_weights())  # by the seed
    assert np.array(matcher.number_words).tolist() == [3, 7, 2**31 - 1]
    entries, differences = [], []
    documents = PAIRS[1]
    for other in (documents, [*documents[1:], documents[0]]):
        for pair in zip(PAIRS[0], other, strict=True):
            both = [words(words.distinct([text])) for text in pair]
            one, two = (nodes_of(matcher, text.vectors[0]) for text in both)
            entries.append(pool(one, two, 4))
            differences.append(abs(len(one) - len(two)) / 2)
    expected = [f(x) for x in (entries, differences) for f in (np.mean, np.std)]
    np.testing.assert_allclose(matcher.statistics, expected, rtol=1e-5)


def test_lengths_that_never_differ():
    matcher = rae.RAE(4, size=4, epochs=1)
    texts = ["wood glue", "door hinge"]
    matcher.pretrain(layers.TrigramVectors(4), texts, texts)
    assert np.array(matcher.statistics)[2:].tolist() == [0, 1]


@pytest.mark.parametrize("head", rae.HEADS)
def test_what_pretraining_found_is_saved(head, tmp_path):
    scorer = pretrained(head)
    trained = scorer.matcher.mlp.variables
    check_saved_scorer(scorer, trained, PAIRS, tmp_path)


def test_trigram_words_have_no_numbers():
    matcher = rae.RAE(4, size=4, numbers=3, epochs=1)
    matcher.pretrain(layers.TrigramVectors(4), *PAIRS)
    assert np.array(matcher.number_words).tolist() == [2**31 - 1] * 3


def test_pretraining_says_what_it_needs():
    words = layers.VocabularyVectors(VOCABULARY, 4)
    with pytest.raises(InputError, match="found 1 queries and 2 documents"):
        rae.RAE(4).pretrain(words, ["a"], ["b", "c"])
    with pytest.raises(InputError, match="none of 2 texts has two words"):
        rae.RAE(4).pretrain(words, ["glue"], ["bolt"])
