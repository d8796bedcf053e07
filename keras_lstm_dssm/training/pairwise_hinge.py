"""PairwiseHinge: the ranking loss of MV-LSTM."""

from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.registration import register


@register
class PairwiseHinge(keras.losses.Loss):
    """Computes how far a positive is from beating a negative by the margin.

        l = max(0, margin + s(Q, D-) - s(Q, D+))

    Wan et al. 2016, section "Model Training", with margin 1. The loss of a
    batch is the mean over its triples. A row with several negatives has the
    mean over them, so that all triples count equally if all rows have the
    same number.

    Args:
        margin: Difference of scores from which the loss is 0. Default 1.
        reduction: See `keras.losses.Loss`. Default: the mean.
        name: Name of the loss.
        dtype: See `keras.losses.Loss`.

    Call arguments:
        y_true: `(batch, candidates)`: 1 for the positive of a row, exactly
            one, and 0 for its negatives.
        y_pred: Scores, `(batch, candidates)`.

    Raises:
        tf.errors.InvalidArgumentError: A row has no positive, or several.

    Example:
    >>> loss = PairwiseHinge()
    >>> float(loss(np.array([[1.0, 0.0]]), np.array([[0.75, 0.5]])))
    0.75
    """

    def __init__(
        self,
        margin: float = 1.0,
        reduction: str = "sum_over_batch_size",
        name: str = "pairwise_hinge",
        dtype: Any = None,
    ) -> None:
        super().__init__(name=name, reduction=reduction, dtype=dtype)
        self.margin = margin

    def call(self, y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
        """Returns the loss of each row, `(batch,)`."""
        is_positive = y_true > 0
        count = tf.math.count_nonzero(is_positive, axis=-1)
        message = "PairwiseHinge needs exactly one positive in each row, found:"
        one_each = tf.Assert(tf.reduce_all(count == 1), [message, count])
        with tf.control_dependencies([one_each]):
            positive = tf.where(is_positive, y_pred, 0)
        violation = tf.nn.relu(
            self.margin
            + y_pred
            - tf.reduce_sum(positive, axis=-1, keepdims=True)
        )
        negatives = tf.cast(tf.logical_not(is_positive), y_pred.dtype)
        return tf.math.divide_no_nan(
            tf.reduce_sum(violation * negatives, axis=-1),
            tf.reduce_sum(negatives, axis=-1),
        )

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor arguments as a dict, for `from_config`."""
        return {**super().get_config(), "margin": self.margin}
