"""States and logits of sentences, against a plain LSTM of one document."""

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.layers.documents import SentenceReader
from tests import reference
from tests.matchers.ragged_texts import check_central_differences, randomise

SENTENCES = np.random.default_rng(0).normal(size=(5, 3))
DOCUMENTS = [[0, 1, 2, 1], [4], [3, 3, 0], [2, 4, 0, 1, 3, 0]]
INDEX = tf.constant(sum(DOCUMENTS, []))
LENGTHS = tf.constant([len(document) for document in DOCUMENTS])

pytestmark = pytest.mark.usefixtures("float64")


def small_reader(scores: bool = True) -> SentenceReader:
    reader = SentenceReader(3, 2, scores)
    randomise(reader)
    return reader


def by_reference(reader: SentenceReader, document: list[int]) -> np.ndarray:
    sentences = list(SENTENCES[document])
    ways = []
    for layer, step in ((reader.forward_lstm, 1), (reader.backward_lstm, -1)):
        gates = reference.gates_of(layer.cell, layer.cell.kernel)
        ways.append(reference.lstm(gates, sentences[::step])["y"][::step])
    return np.concatenate(ways, axis=1)


@pytest.mark.parametrize("training", [False, True])
def test_states_and_logits_equal_the_reference(training):
    reader = small_reader()
    expected = np.concatenate([by_reference(reader, d) for d in DOCUMENTS])
    weights, bias = (each.numpy() for each in reader.score.weights)
    for run in reader, tf.function(reader):
        states, logits = run(
            tf.constant(SENTENCES), INDEX, LENGTHS, training=training
        )
        np.testing.assert_allclose(states, expected, rtol=1e-12)
        np.testing.assert_allclose(
            logits, expected @ weights[:, 0] + bias, rtol=1e-12
        )


@pytest.mark.parametrize("training", [False, True])
def test_gradients_equal_differences(training):
    reader, sentences = small_reader(), tf.Variable(SENTENCES)
    toward = np.random.default_rng(1).normal(size=(14, 5))

    def loss() -> tf.Tensor:
        states, logits = reader(sentences, INDEX, LENGTHS, training=training)
        values = tf.concat([states, logits[:, tf.newaxis]], axis=1)
        return tf.reduce_sum(values * toward)

    variables = [variable.value for variable in reader.trainable_variables]
    assert len(variables) == 8
    check_central_differences(loss, [*variables, sentences])


def test_without_scores_all_logits_are_zero():
    reader = small_reader(scores=False)
    assert len(reader.weights) == 6
    states, logits = reader(tf.constant(SENTENCES), INDEX, LENGTHS)
    assert states.shape == (14, 4)
    np.testing.assert_array_equal(logits, np.zeros(14))


def test_no_documents_give_no_states():
    none = tf.zeros([0], tf.int32)
    states, logits = small_reader()(tf.zeros([0, 3], tf.float64), none, none)
    assert states.shape == (0, 4) and logits.shape == (0,)


def test_wrong_arguments_are_explained():
    for arguments in ((0, 2), (3, 0)):
        with pytest.raises(InputError, match="must be at least 1, not"):
            SentenceReader(*arguments)
