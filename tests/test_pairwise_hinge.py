import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.losses import PairwiseHinge

SCORES = np.array([[2.0, 0.5], [0.25, 0.0], [0.0, 0.0], [-1.0, 1.0]])
LABELS = np.tile([1.0, 0.0], (4, 1))


@pytest.mark.parametrize(
    ("margin", "losses"), [(1.0, [0, 0.75, 1, 3]), (0.25, [0, 0, 0.25, 2.25])]
)
def test_values_by_hand(margin, losses):
    loss = PairwiseHinge(margin)
    np.testing.assert_allclose(loss.call(LABELS, SCORES), losses, rtol=1e-6)
    assert float(loss(LABELS, SCORES)) == pytest.approx(np.mean(losses))
    swapped = loss.call(LABELS[:, ::-1], SCORES[:, ::-1])
    np.testing.assert_allclose(swapped, losses, rtol=1e-6)


def test_a_row_with_several_negatives_has_their_mean():
    labels = np.array([[0.0, 1.0, 0.0]])
    scores = np.array([[0.5, 0.75, -2.0]])
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
