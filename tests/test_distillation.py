"""The teacher's part of the loss, compared with NumPy in float64."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm import CosineSoftmax, Distillation, InputError

RANDOM = np.random.default_rng(4)
TEACHER = RANDOM.uniform(-1, 1, (5, 4))
# Titles that are left out: none, one, two, all but one, and all.
for row, left_out in enumerate(([], [2], [0, 3], [0, 1, 3], [0, 1, 2, 3])):
    TEACHER[row, left_out] = -np.inf
COSINES = RANDOM.uniform(-1, 1, (5, 4))

pytestmark = pytest.mark.usefixtures("float64")


def new_loss() -> Distillation:
    return Distillation(16.0, weight=3.0, temperature=0.2, teacher_gamma=6.0)


def softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores)
    return powers / powers.sum()


def targets_and_answers(row: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """p, q, and the titles of a row that have them."""
    titles = np.flatnonzero(np.isfinite(TEACHER[row]))
    p = softmax(TEACHER[row, titles] / 0.2)
    q = softmax(6.0 * COSINES[row, titles])
    return p, q, titles


def divergences() -> np.ndarray:
    rows = [targets_and_answers(row) for row in range(5)]
    return np.array([np.sum(p * np.log(p / q)) for p, q, _ in rows])


def test_equals_the_formula():
    expected = divergences()
    assert expected[3] == expected[4] == 0  # one title or none to order
    assert expected[:3].min() > 1e-8
    divergence = new_loss().divergence(
        tf.constant(TEACHER), tf.constant(COSINES)
    )
    np.testing.assert_allclose(divergence, expected, rtol=1e-12, atol=1e-14)
    total = new_loss().teacher_loss(tf.constant(TEACHER), tf.constant(COSINES))
    np.testing.assert_allclose(total, 3.0 * expected.mean(), rtol=1e-12)


def test_the_gradient_is_that_of_the_docstring():
    cosines = tf.constant(COSINES)
    with tf.GradientTape() as tape:
        tape.watch(cosines)
        loss = new_loss().teacher_loss(tf.constant(TEACHER), cosines)
    gradient = tape.gradient(loss, cosines).numpy()
    expected = np.zeros([5, 4])
    for row in range(5):
        p, q, titles = targets_and_answers(row)
        expected[row, titles] = 3.0 / 5 * 6.0 * (q - p)
    np.testing.assert_allclose(gradient, expected, atol=1e-13)


def test_the_gradient_equals_central_differences():
    step = 1e-6
    cosines = tf.constant(COSINES)
    with tf.GradientTape() as tape:
        tape.watch(cosines)
        loss = new_loss().teacher_loss(tf.constant(TEACHER), cosines)
    gradient = tape.gradient(loss, cosines).numpy()
    for index in np.ndindex(COSINES.shape):
        ends = []
        for sign in (-1, 1):
            moved = COSINES.copy()
            moved[index] += sign * step
            ends.append(
                float(new_loss().teacher_loss(tf.constant(TEACHER), moved))
            )
        difference = (ends[1] - ends[0]) / (2 * step)
        assert gradient[index] == pytest.approx(difference, abs=1e-8)


def test_the_teacher_gets_no_gradient_and_its_own_order_costs_nothing():
    cosines = tf.constant(TEACHER[:1] * 5 / 6)  # t / 0.2 = 6 R
    loss = new_loss().teacher_loss(tf.constant(TEACHER[:1]), cosines)
    assert float(loss) == pytest.approx(0, abs=1e-13)


def test_a_small_temperature_does_not_overflow():
    loss = Distillation(temperature=1e-6, teacher_gamma=1e6)
    teacher = tf.constant([[1.0, -1.0, -np.inf]])
    divergence = loss.divergence(teacher, tf.constant([[-1.0, 1.0, 0.5]]))
    np.testing.assert_allclose(divergence, [2e6], rtol=1e-9)


def test_the_clicks_cost_what_they_do_without_a_teacher():
    labels = np.array([[1.0, 0, 0, -1]])
    np.testing.assert_array_equal(
        new_loss()(labels, COSINES[:1]),
        CosineSoftmax(16.0)(labels, COSINES[:1]),
    )


def test_the_configuration_makes_an_equal_loss():
    config = keras.losses.serialize(new_loss())
    copy = keras.losses.deserialize(config)
    assert copy.get_config() == new_loss().get_config()
    assert (copy.gamma, copy.weight) == (16.0, 3.0)
    assert (copy.temperature, copy.teacher_gamma) == (0.2, 6.0)


@pytest.mark.parametrize("name", ["weight", "temperature", "teacher_gamma"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("inf"), float("nan")])
def test_values_out_of_range_are_refused(name, value):
    with pytest.raises(InputError, match=f"{name} is .*finite number above 0"):
        Distillation(**{name: value})
