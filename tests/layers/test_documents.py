"""The layers of a document, eqs. (1) to (3), against loops, in float64."""

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.layers.documents import (
    DocumentEncoder,
    SentenceEncoder,
    SentenceReader,
    sentence_weights,
    windows_of,
)
from keras_lstm_dssm.text import WordBatch
from tests import reference
from tests.matchers.ragged_texts import check_central_differences, randomise

RANDOM = np.random.default_rng(0)
VECTORS = RANDOM.normal(size=(6, 3))
"""Of words; then of sentences."""
SENTENCES = [[0, 1, 2, 3, 1, 0], [4, 3, 3, 2], [1, 2], [3], [5]]
DOCUMENTS = [[0, 1, 2, 1], [4], [3, 3, 0], [2, 4, 0, 1, 3, 0]]
INDEX = tf.constant(sum(DOCUMENTS, []))
LENGTHS = tf.constant([len(document) for document in DOCUMENTS])
DOCUMENT = tf.constant([0, 0, 0, 1, 2, 2])
LOGITS = RANDOM.normal(size=6) * 3
STATES = RANDOM.normal(size=(6, 4))

pytestmark = pytest.mark.usefixtures("float64")
both_ways = pytest.mark.parametrize("training", [False, True])


def weights_of(
    layer: SentenceEncoder | SentenceReader | DocumentEncoder,
) -> list:
    return [variable.value for variable in layer.trainable_variables]


def word_batch(sentences: list[list[int]]) -> WordBatch:
    none = tf.zeros([0], tf.int32)
    words = tf.ragged.constant(sentences, tf.int32)
    lengths = tf.cast(words.row_lengths(), tf.int32)
    return WordBatch(none, none, none, words.to_tensor(), lengths, none)


def small_sentence_encoder() -> SentenceEncoder:
    encoder = SentenceEncoder(3, 2, [1, 2, 3, 5])
    randomise(encoder)
    encoder.bias.assign(tf.linspace(-0.3, 0.9, 8))
    return encoder


def sentence_by_loops(
    encoder: SentenceEncoder, sentence: list[int]
) -> np.ndarray:
    values = []
    for width, kernel in zip(encoder.windows, encoder.kernels, strict=True):
        weights, words = kernel.numpy(), [VECTORS[word] for word in sentence]
        words += [np.zeros(3)] * (width - len(words))
        windows = [
            sum(words[start + o] @ weights[o] for o in range(width))
            for start in range(len(words) - width + 1)
        ]
        values.append(np.max(windows, axis=0))
    return np.maximum(0, np.concatenate(values) + encoder.bias.numpy())


@both_ways
def test_sentences_equal_loops(training):
    encoder = small_sentence_encoder()
    expected = [sentence_by_loops(encoder, sentence) for sentence in SENTENCES]
    assert 0 < np.count_nonzero(expected) < np.size(expected)
    batch = word_batch(SENTENCES)
    for run in encoder, tf.function(encoder):
        found = run(tf.constant(VECTORS), batch, training=training)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@both_ways
def test_gradients_of_sentences_equal_differences(training):
    encoder, vectors = small_sentence_encoder(), tf.Variable(VECTORS)
    toward = RANDOM.normal(size=(5, 8))

    def loss() -> tf.Tensor:
        values = encoder(vectors, word_batch(SENTENCES), training=training)
        return tf.reduce_sum(values * toward)

    assert len(weights_of(encoder)) == 5
    check_central_differences(loss, [*weights_of(encoder), vectors])


def test_the_first_of_equal_windows_has_the_gradient():
    encoder = SentenceEncoder(1, 1, [1])
    encoder.kernels[0].assign([[[1.0]]])
    vectors = tf.constant([[2.0], [2.0], [1.0]], tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(vectors)
        values = encoder(vectors, word_batch([[2, 1, 0]]), training=True)
    gradient = tape.gradient(values, vectors)
    assert gradient.numpy().tolist() == [[0], [1], [0]]


def test_windows_are_within_sentences():
    position, sentence, inside = windows_of(tf.constant([3, 1, 2]), 2)
    assert position.numpy().tolist() == [[0, 1], [1, 2], [3, 0], [4, 5]]
    assert sentence.numpy().tolist() == [0, 0, 1, 2]
    assert inside.numpy().tolist() == [[True] * 2] * 2 + [
        [True, False], [True, True],
    ]  # fmt: skip


def test_a_long_sentence_costs_only_its_own_words():
    """There is no padding to the longest sentence."""
    lengths = tf.constant([60, *[4] * 100])
    for width in (3, 4, 5):
        windows = windows_of(lengths, width)[0]
        assert len(windows) == 61 - width + 100 * max(5 - width, 1)


def test_no_sentences_give_no_vectors():
    empty = word_batch([[0]])
    empty = empty._replace(words=empty.words[:0], lengths=empty.lengths[:0])
    vectors = tf.zeros([0, 3], tf.float64)
    assert small_sentence_encoder()(vectors, empty).shape == (0, 8)


def small_reader(scores: bool = True) -> SentenceReader:
    reader = SentenceReader(3, 2, scores)
    randomise(reader)
    return reader


def states_by_reference(
    reader: SentenceReader, document: list[int]
) -> np.ndarray:
    sentences = list(VECTORS[document])
    ways = []
    for layer, step in ((reader.forward_lstm, 1), (reader.backward_lstm, -1)):
        gates = reference.gates_of(layer.cell, layer.cell.kernel)
        ways.append(reference.lstm(gates, sentences[::step])["y"][::step])
    return np.concatenate(ways, axis=1)


@both_ways
def test_states_and_logits_equal_the_reference(training):
    reader = small_reader()
    expected = np.concatenate(
        [states_by_reference(reader, d) for d in DOCUMENTS]
    )
    weights, bias = (each.numpy() for each in reader.score.weights)
    for run in reader, tf.function(reader):
        states, logits = run(
            tf.constant(VECTORS), INDEX, LENGTHS, training=training
        )
        np.testing.assert_allclose(states, expected, rtol=1e-12)
        np.testing.assert_allclose(
            logits, expected @ weights[:, 0] + bias, rtol=1e-12
        )


@both_ways
def test_gradients_of_states_equal_differences(training):
    reader, sentences = small_reader(), tf.Variable(VECTORS)
    toward = RANDOM.normal(size=(14, 5))

    def loss() -> tf.Tensor:
        states, logits = reader(sentences, INDEX, LENGTHS, training=training)
        values = tf.concat([states, logits[:, tf.newaxis]], axis=1)
        return tf.reduce_sum(values * toward)

    assert len(weights_of(reader)) == 8
    check_central_differences(loss, [*weights_of(reader), sentences])


def test_without_scores_all_logits_are_zero():
    reader = small_reader(scores=False)
    assert len(reader.weights) == 6
    states, logits = reader(tf.constant(VECTORS), INDEX, LENGTHS)
    assert states.shape == (14, 4)
    np.testing.assert_array_equal(logits, np.zeros(14))


def test_no_documents_give_no_states():
    none = tf.zeros([0], tf.int32)
    states, logits = small_reader()(tf.zeros([0, 3], tf.float64), none, none)
    assert states.shape == (0, 4) and logits.shape == (0,)


def small_document_encoder() -> DocumentEncoder:
    encoder = DocumentEncoder(4, 3)
    randomise(encoder)
    return encoder


def documents_by_loops(
    encoder: DocumentEncoder, logits: np.ndarray
) -> np.ndarray:
    weights, bias = (each.numpy() for each in encoder.dense.weights)
    vectors = []
    for rows in ([0, 1, 2], [3], [4, 5]):
        p = 1 / (1 + np.exp(-logits[rows]))
        mean = sum(p[i] / sum(p) * STATES[row] for i, row in enumerate(rows))
        vectors.append(np.tanh(mean @ weights + bias))
    return np.array(vectors)


def test_documents_equal_loops():
    encoder = small_document_encoder()
    found = encoder(tf.constant(STATES), tf.constant(LOGITS), DOCUMENT)
    np.testing.assert_allclose(
        found, documents_by_loops(encoder, LOGITS), rtol=1e-12
    )


def test_gradients_of_documents_equal_differences():
    encoder = small_document_encoder()
    inputs = tf.Variable(STATES), tf.Variable(LOGITS)
    toward = RANDOM.normal(size=(3, 3))

    def loss() -> tf.Tensor:
        return tf.reduce_sum(encoder(*inputs, DOCUMENT) * toward)

    assert len(weights_of(encoder)) == 2
    check_central_differences(loss, [*weights_of(encoder), *inputs])


@pytest.mark.parametrize("size", [1.0, 100.0, 1e4, -1e4])
def test_weights_sum_to_1(size):
    """Even where every p underflows to 0, or is 1."""
    weights = sentence_weights(tf.constant(LOGITS - 5) * size, DOCUMENT)
    assert np.isfinite(weights).all() and np.min(weights) >= 0
    np.testing.assert_allclose(
        tf.math.segment_sum(weights, DOCUMENT), np.ones(3), rtol=1e-12
    )


@pytest.mark.parametrize("logit", [0.0, 2.0, -900.0])
def test_a_constant_p_gives_the_mean(logit):
    weights = sentence_weights(tf.fill([6], tf.constant(logit)), DOCUMENT)
    np.testing.assert_allclose(weights, [1 / 3] * 3 + [1] + [0.5] * 2)


def test_tiny_probabilities_keep_their_ratio():
    logits = tf.constant([-800.0, -800.0 + np.log(3)], tf.float64)
    weights = sentence_weights(logits, tf.constant([0, 0]))
    np.testing.assert_allclose(weights, [0.25, 0.75], rtol=1e-10)
