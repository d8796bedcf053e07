import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm import CosineSoftmax, InputError

GAMMA = 7.0
RANDOM = np.random.default_rng(3)
COSINES = RANDOM.uniform(-1, 1, (5, 4))
LABELS = np.array(
    [[1, 0, 0, 0], [0, 0, 1, 0], [1, -1, 0, 0], [1, 0, -1, -1], [1, -1, -1, -1]]
).astype("float64")

pytestmark = pytest.mark.usefixtures("float64")


def deltas(row: int) -> np.ndarray:
    """Delta_j = R(Q, D+) - R(Q, D_j-) over the negatives of a row."""
    cosines, labels = COSINES[row], LABELS[row]
    return cosines[labels == 1] - cosines[labels == 0]


def losses() -> tuple[np.ndarray, np.ndarray]:
    """The two forms of (5)."""
    softmax, logistic = [], []
    for row, (cosines, labels) in enumerate(zip(COSINES, LABELS, strict=True)):
        scores = np.exp(GAMMA * cosines)
        clicked = scores[labels == 1].sum()
        softmax.append(-np.log(clicked / (clicked + scores[labels == 0].sum())))
        logistic.append(np.log(1 + np.exp(-GAMMA * deltas(row)).sum()))
    return np.array(softmax), np.array(logistic)


def test_equals_both_forms():
    loss = CosineSoftmax(GAMMA, reduction=None)(LABELS, COSINES)
    for form in losses():
        np.testing.assert_allclose(loss, form, rtol=1e-12, atol=1e-14)


def test_nothing_to_beat_costs_nothing():
    loss = CosineSoftmax(GAMMA)(LABELS[4:], COSINES[4:])
    assert loss.numpy() == 0


def test_sum_is_the_papers_and_mean_the_default():
    expected = losses()[0]
    total = CosineSoftmax(GAMMA, reduction="sum")(LABELS, COSINES)
    mean = CosineSoftmax(GAMMA)(LABELS, COSINES)
    np.testing.assert_allclose(total, expected.sum(), rtol=1e-12)
    np.testing.assert_allclose(mean, expected.mean(), rtol=1e-12)


def test_derivative_is_alpha():
    """alpha_j of (8) is dl/d Delta_j; masked cosines have none.

    alpha is negative, so that grad L = sum alpha dDelta: the minus sign in
    front of the sum in (7) is one too many.
    """
    cosines = tf.constant(COSINES)
    with tf.GradientTape() as tape:
        tape.watch(cosines)
        total = CosineSoftmax(GAMMA, reduction="sum")(LABELS, cosines)
    gradient = tape.gradient(total, cosines).numpy()
    for row, labels in enumerate(LABELS):
        weights = np.exp(-GAMMA * deltas(row))
        alpha = -GAMMA * weights / (1 + weights.sum())
        expected = np.zeros(4)
        expected[labels == 0] = -alpha  # Delta_j falls as R(Q, D_j) grows
        expected[labels == 1] = alpha.sum()
        np.testing.assert_allclose(gradient[row], expected, atol=1e-12)


def test_labels_may_be_indices():
    """Indices give the same losses and gradients as one-hot labels."""
    clicked = np.array([3, 0, 2, 2, 1])
    results = []
    for labels in (clicked, np.eye(4)[clicked]):
        cosines = tf.constant(COSINES)
        with tf.GradientTape() as tape:
            tape.watch(cosines)
            loss = CosineSoftmax(GAMMA, reduction=None)(labels, cosines)
        results.append((loss.numpy(), tape.gradient(loss, cosines).numpy()))
    for of_indices, of_labels in zip(*results, strict=True):
        np.testing.assert_array_equal(of_indices, of_labels)
    scores = np.exp(GAMMA * COSINES)
    expected = np.log(scores.sum(1) / scores[np.arange(5), clicked])
    np.testing.assert_allclose(results[0][0], expected, rtol=1e-12)


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


def test_large_gamma_does_not_overflow():
    labels = np.array([[1, 0, -1], [-1, 1, 0]])
    cosines = np.array([[1.0, -1.0, 1.0], [1.0, -1.0, 1.0]])
    loss = CosineSoftmax(1e4, reduction=None)(labels, cosines)
    np.testing.assert_allclose(loss, [0, 2e4])


def test_the_documented_number():
    loss = CosineSoftmax(gamma=10.0)
    cost = loss(np.array([[1, 0, -1]]), np.array([[0.5, 0.2, 0.5]]))
    assert float(cost) == pytest.approx(0.04858735, abs=1e-8)


def test_the_gradient_is_that_of_differences():
    loss = CosineSoftmax(GAMMA, reduction="sum")
    cosines = tf.constant(COSINES)
    with tf.GradientTape() as tape:
        tape.watch(cosines)
        value = loss(LABELS, cosines)
    gradient = tape.gradient(value, cosines).numpy()
    for place in np.ndindex(*COSINES.shape):
        step = np.zeros_like(COSINES)
        step[place] = 1e-6
        change = loss(LABELS, COSINES + step) - loss(LABELS, COSINES - step)
        np.testing.assert_allclose(gradient[place], change / 2e-6, atol=1e-8)
    assert (gradient[LABELS < 0] == 0).all()


def test_large_scales_do_not_overflow():
    cosines = tf.constant([[-1.0, 1.0, -1.0]], tf.float32)
    loss = CosineSoftmax(1e4, dtype="float32")
    with tf.GradientTape() as tape:
        tape.watch(cosines)
        value = loss(np.array([[1, 0, -1]]), cosines)
    assert value.numpy() == 2e4
    np.testing.assert_array_equal(
        tape.gradient(value, cosines), [[-1e4, 1e4, 0]]
    )
