"""Convolution and maximum over the words of sentences, against loops."""

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.layers.documents import SentenceEncoder, windows_of
from keras_lstm_dssm.text import WordBatch
from tests.matchers.ragged_texts import check_central_differences, randomise

SENTENCES = [[0, 1, 2, 3, 1, 0], [4, 3, 3, 2], [1, 2], [3], [5]]
VECTORS = np.random.default_rng(0).normal(size=(6, 3))
TOWARD = tf.constant(np.random.default_rng(1).normal(size=(5, 8)))

pytestmark = pytest.mark.usefixtures("float64")


def word_batch(sentences: list[list[int]]) -> WordBatch:
    none = tf.zeros([0], tf.int32)
    return WordBatch(
        none,
        none,
        none,
        tf.ragged.constant(sentences, tf.int32).to_tensor(),
        tf.constant([len(sentence) for sentence in sentences]),
        none,
    )


def small_encoder() -> SentenceEncoder:
    encoder = SentenceEncoder(3, 2, [1, 2, 3, 5])
    randomise(encoder)
    encoder.bias.assign(tf.linspace(-0.3, 0.9, 8))
    return encoder


def by_loops(encoder: SentenceEncoder, sentence: list[int]) -> np.ndarray:
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


@pytest.mark.parametrize("training", [False, True])
def test_values_equal_loops(training):
    encoder = small_encoder()
    expected = [by_loops(encoder, sentence) for sentence in SENTENCES]
    assert 0 < np.count_nonzero(expected) < np.size(expected)
    batch = word_batch(SENTENCES)
    for run in encoder, tf.function(encoder):
        found = run(tf.constant(VECTORS), batch, training=training)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("training", [False, True])
def test_gradients_equal_differences(training):
    encoder, vectors = small_encoder(), tf.Variable(VECTORS)

    def loss() -> tf.Tensor:
        values = encoder(vectors, word_batch(SENTENCES), training=training)
        return tf.reduce_sum(values * TOWARD)

    variables = [variable.value for variable in encoder.trainable_variables]
    assert len(variables) == 5
    check_central_differences(loss, [*variables, vectors])


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
    assert small_encoder()(vectors, empty).shape == (0, 8)


@pytest.mark.parametrize(
    "arguments",
    [{"filters": 0}, {"word_dimension": 0}, {"windows": [0, 1]},
     {"windows": []}],
)  # fmt: skip
def test_wrong_arguments_are_explained(arguments):
    with pytest.raises(InputError, match="must be at least 1, not"):
        SentenceEncoder(**arguments)
