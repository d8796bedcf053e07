"""Both parts of the loss of KeyVec, against loops."""

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.losses import KeyVecLoss
from tests.matchers.ragged_texts import check_central_differences

RANDOM = np.random.default_rng(0)
SENTENCES = [3, 1, 2]
DOCUMENT = tf.constant([0, 0, 0, 1, 2, 2])
SALIENT = tf.constant([True, False, True, False, True, True])
LOGITS = RANDOM.normal(size=6) * 2
KEY_WORDS = [[2, 0], [], [4]]
WORDS, OF_WORD = tf.constant([2, 0, 4]), tf.constant([0, 0, 2])
WORD_LOGITS = RANDOM.normal(size=(3, 5))

pytestmark = pytest.mark.usefixtures("float64")


def read_by_loops() -> list[float]:
    p = 1 / (1 + np.exp(-LOGITS))
    totals = [0.0] * 3
    for document, is_key, each in zip(DOCUMENT, SALIENT, p, strict=True):
        totals[document] -= np.log(each if is_key else 1 - each)
    return totals


def words_by_loops() -> list[float]:
    totals = []
    for logits, words in zip(WORD_LOGITS, KEY_WORDS, strict=True):
        p = np.exp(logits) / sum(np.exp(logits))
        totals.append(-sum(np.log(p[word]) for word in words))
    return totals


def costs(logits: tf.Tensor, word_logits: tf.Tensor) -> tf.Tensor:
    return tf.stack(
        [
            KeyVecLoss.read_costs(logits, SALIENT, DOCUMENT),
            KeyVecLoss.word_costs(word_logits, WORDS, OF_WORD),
        ],
        axis=1,
    )


def test_parts_equal_loops():
    found = costs(tf.constant(LOGITS), tf.constant(WORD_LOGITS))
    np.testing.assert_allclose(found[:, 0], read_by_loops(), rtol=1e-12)
    np.testing.assert_allclose(found[:, 1], words_by_loops(), rtol=1e-12)
    assert found[1, 1] == 0  # without key words


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("weights", [(1, 1), (0.5, 0), (0, 2)])
def test_loss_is_a_mean_over_documents(normalize, weights):
    read, words = np.array(read_by_loops()), np.array(words_by_loops())
    counts = np.array([SENTENCES, [2, 0, 1]], float).T
    if normalize:
        read, words = read / SENTENCES, words / [2, 1, 1]
    loss = KeyVecLoss(*weights, normalize)
    expected = np.mean(weights[0] * read + weights[1] * words)
    found = loss(counts, costs(tf.constant(LOGITS), tf.constant(WORD_LOGITS)))
    assert float(found) == pytest.approx(expected, rel=1e-12)


def test_gradients_equal_differences():
    inputs = tf.Variable(LOGITS), tf.Variable(WORD_LOGITS)
    toward = RANDOM.normal(size=(3, 2))
    check_central_differences(
        lambda: tf.reduce_sum(costs(*inputs) * toward), inputs
    )


def test_extreme_logits_stay_finite():
    found = costs(tf.constant(LOGITS) * 1e5, tf.constant(WORD_LOGITS) * 1e5)
    assert np.isfinite(found).all() and np.max(found) > 1e4


@pytest.mark.parametrize("factor", [-1.0, float("nan"), float("inf")])
def test_wrong_factors_are_explained(factor):
    for name in ("read_weight", "word_weight"):
        with pytest.raises(InputError, match="must be 0 or more, not"):
            KeyVecLoss(**{name: factor})
