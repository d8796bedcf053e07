"""The losses, against the formulas of the papers in NumPy and float64."""

import numpy as np
import pytest
import tensorflow as tf
from scipy.special import softmax

from keras_lstm_dssm import CosineSoftmax, InputError
from keras_lstm_dssm.losses import KeyVecLoss, PairwiseHinge
from tests.kit.equal import check_equal
from tests.matchers.ragged_texts import check_central_differences

pytestmark = pytest.mark.usefixtures("float64")

GAMMA = 7.0
COSINES = np.random.default_rng(3).uniform(-1, 1, (5, 4))
LABELS = np.array(
    [[1, 0, 0, 0], [0, 0, 1, 0], [1, -1, 0, 0], [1, 0, -1, -1], [1, -1, -1, -1]]
).astype("float64")


def deltas(row: int) -> np.ndarray:
    """Delta_j = R(Q, D+) - R(Q, D_j-) over the negatives of a row."""
    cosines, labels = COSINES[row], LABELS[row]
    return cosines[labels == 1] - cosines[labels == 0]


def softmax_and_logistic_losses() -> tuple[np.ndarray, np.ndarray]:
    """Computes the loss of each row by both forms of equation (5).

    A softmax over cosines, and a logistic function of their differences."""
    softmax, logistic = [], []
    for row, (cosines, labels) in enumerate(zip(COSINES, LABELS, strict=True)):
        scores = np.exp(GAMMA * cosines)
        clicked = scores[labels == 1].sum()
        softmax.append(-np.log(clicked / (clicked + scores[labels == 0].sum())))
        logistic.append(np.log(1 + np.exp(-GAMMA * deltas(row)).sum()))
    return np.array(softmax), np.array(logistic)


def value_and_gradient(loss, labels, cosines) -> tuple[np.ndarray, np.ndarray]:
    cosines = tf.constant(cosines)
    with tf.GradientTape() as tape:
        tape.watch(cosines)
        value = loss(labels, cosines)
    return value.numpy(), tape.gradient(value, cosines).numpy()


def test_cosine_softmax_equals_both_forms():
    """The sum is the paper's, the mean the default."""
    forms = softmax_and_logistic_losses()
    loss = CosineSoftmax(GAMMA, reduction=None)(LABELS, COSINES)
    for form in forms:
        np.testing.assert_allclose(loss, form, rtol=1e-12, atol=1e-14)
    assert loss[4] == 0  # nothing to beat
    for options, total in (({"reduction": "sum"}, np.sum), ({}, np.mean)):
        loss = CosineSoftmax(GAMMA, **options)(LABELS, COSINES)
        np.testing.assert_allclose(loss, total(forms[0]), rtol=1e-12)


def test_its_derivative_is_alpha():
    """alpha_j of (8) is dl/d Delta_j; masked cosines have none.

    alpha is negative: the minus sign in (7) is one too many."""
    loss = CosineSoftmax(GAMMA, reduction="sum")
    _, gradient = value_and_gradient(loss, LABELS, COSINES)
    for row, labels in enumerate(LABELS):
        weights = np.exp(-GAMMA * deltas(row))
        alpha = -GAMMA * weights / (1 + weights.sum())
        expected = np.zeros(4)
        expected[labels == 0] = -alpha  # Delta_j falls as R(Q, D_j) grows
        expected[labels == 1] = alpha.sum()
        np.testing.assert_allclose(gradient[row], expected, atol=1e-12)
    assert (gradient[LABELS < 0] == 0).all()
    cosines = tf.Variable(COSINES)
    check_central_differences(lambda: loss(LABELS, cosines), [cosines])


def test_its_labels_may_be_indices():
    """Indices give the same losses and gradients as one-hot labels."""
    clicked = np.array([3, 0, 2, 2, 1])
    loss = CosineSoftmax(GAMMA, reduction=None)
    of_indices = value_and_gradient(loss, clicked, COSINES)
    of_labels = value_and_gradient(loss, np.eye(4)[clicked], COSINES)
    check_equal(of_indices, of_labels)
    scores = np.exp(GAMMA * COSINES)
    expected = np.log(scores.sum(1) / scores[np.arange(5), clicked])
    np.testing.assert_allclose(of_indices[0], expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_does_not_take_indices(dtype):
    """Keras casts labels to the loss's dtype: bfloat16 rounds 257 to 256."""
    loss = CosineSoftmax(GAMMA, dtype=dtype)
    assert not loss.takes_indices
    with pytest.raises(InputError, match=f"indices, which {dtype} may round"):
        loss(np.array([257]), np.zeros((1, 300)))
    labels = np.array([[1, 0, -1], [-1, 1, 0]])
    cosines = np.array([[0.5, 0.25, 0.5], [0.5, 0.5, 0.25]])
    expected = np.log1p(np.exp(-GAMMA / 4))
    assert float(loss(labels, cosines)) == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_large_gamma_does_not_overflow(dtype):
    labels, cosines = [[1, 0, -1], [-1, 1, 0]], [[-1, 1, 1], [-1, 1, -1]]
    loss = CosineSoftmax(1e4, reduction=None, dtype=dtype)
    value, gradient = value_and_gradient(
        loss, np.array(labels), np.array(cosines, dtype)
    )
    np.testing.assert_array_equal(value, [2e4, 0])
    np.testing.assert_array_equal(gradient, [[-1e4, 1e4, 0], [0, 0, 0]])


@pytest.mark.parametrize("value", [-1.0, float("inf"), float("nan")])
def test_values_out_of_range_are_explained(value):
    for name in ("read_weight", "word_weight"):
        with pytest.raises(InputError, match="must be finite and 0 or more"):
            KeyVecLoss(**{name: value})


SCORES = np.array([[2.0, 0.5], [0.25, 0.0], [0.0, 0.0], [-1.0, 1.0]])


@pytest.mark.parametrize(
    ("margin", "losses"), [(1.0, [0, 0.75, 1, 3]), (0.25, [0, 0, 0.25, 2.25])]
)
def test_pairwise_hinge_by_hand(margin, losses):
    loss, labels = PairwiseHinge(margin), np.tile([1.0, 0.0], (4, 1))
    np.testing.assert_allclose(loss.call(labels, SCORES), losses, rtol=1e-6)
    assert float(loss(labels, SCORES)) == pytest.approx(np.mean(losses))
    swapped = loss.call(labels[:, ::-1], SCORES[:, ::-1])
    np.testing.assert_allclose(swapped, losses, rtol=1e-6)


def test_a_row_with_several_negatives_has_their_mean():
    labels, scores = np.array([[0.0, 1, 0]]), np.array([[0.5, 0.75, -2]])
    assert float(PairwiseHinge()(labels, scores)) == pytest.approx(0.75 / 2)


@pytest.mark.parametrize("positives", [0, 2])
def test_a_row_needs_exactly_one_positive(positives):
    """The loss of a sum of two positives, or of none, has no meaning."""
    labels = np.array([[1.0, 0, 0], [0, 0, 1]])
    scores = np.array([[2.0, 0.5, -1], [0.25, 0, 0.75]])
    loss = PairwiseHinge()
    # max(0, 1 + 0.25 - 0.75) and max(0, 1 + 0 - 0.75), of the second row.
    np.testing.assert_allclose(loss.call(labels, scores), [0, 0.375])
    labels[0, :2] = positives / 2
    traced = tf.function(loss).get_concrete_function(
        *[tf.TensorSpec([None, None], tf.float64)] * 2
    )
    for call in (loss, lambda *both: traced(*map(tf.constant, both))):
        with pytest.raises(
            tf.errors.InvalidArgumentError,
            match=rf"(?s)one positive in each row, found:.*{positives},? 1",
        ):
            call(labels, scores)


RANDOM = np.random.default_rng(0)
SENTENCES = [3, 1, 2]
DOCUMENT = tf.constant([0, 0, 0, 1, 2, 2])
SALIENT = tf.constant([True, False, True, False, True, True])
LOGITS = RANDOM.normal(size=6) * 2
KEY_WORDS = [[2, 0], [], [4]]
WORD_LOGITS = RANDOM.normal(size=(3, 5))


def keyvec_costs_by_loops() -> tuple[np.ndarray, np.ndarray]:
    """Both parts of the loss of each document."""
    p, read = 1 / (1 + np.exp(-LOGITS)), np.zeros(3)
    for document, is_key, each in zip(DOCUMENT, SALIENT, p, strict=True):
        read[document] -= np.log(each if is_key else 1 - each)
    words = [
        -sum(np.log(softmax(logits)[word]) for word in of_document)
        for logits, of_document in zip(WORD_LOGITS, KEY_WORDS, strict=True)
    ]
    return read, np.array(words)


def keyvec_costs(logits: tf.Tensor, word_logits: tf.Tensor) -> tf.Tensor:
    words, of_word = tf.constant([2, 0, 4]), tf.constant([0, 0, 2])
    return tf.stack(
        [
            KeyVecLoss.read_costs(logits, SALIENT, DOCUMENT),
            KeyVecLoss.word_costs(word_logits, words, of_word),
        ],
        axis=1,
    )


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("weights", [(1, 1), (0.5, 0), (0, 2)])
def test_keyvec_loss_is_a_mean_over_documents(normalize, weights):
    costs = keyvec_costs(tf.constant(LOGITS), tf.constant(WORD_LOGITS))
    assert costs[1, 1] == 0  # without key words
    read, words = keyvec_costs_by_loops()
    np.testing.assert_allclose(costs[:, 0], read, rtol=1e-12)
    np.testing.assert_allclose(costs[:, 1], words, rtol=1e-12)
    if normalize:
        read, words = read / SENTENCES, words / [2, 1, 1]
    counts = np.array([SENTENCES, [2, 0, 1]], float).T
    expected = np.mean(weights[0] * read + weights[1] * words)
    found = KeyVecLoss(*weights, normalize)(counts, costs)
    assert float(found) == pytest.approx(expected, rel=1e-12)


def test_gradients_of_keyvec_equal_differences():
    inputs = tf.Variable(LOGITS), tf.Variable(WORD_LOGITS)
    toward = RANDOM.normal(size=(3, 2))
    check_central_differences(
        lambda: tf.reduce_sum(keyvec_costs(*inputs) * toward), inputs
    )


def test_extreme_logits_stay_finite():
    found = keyvec_costs(LOGITS * 1e5, tf.constant(WORD_LOGITS) * 1e5)
    assert np.isfinite(found).all() and np.max(found) > 1e4
