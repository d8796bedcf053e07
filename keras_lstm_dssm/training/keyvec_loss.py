"""KeyVecLoss: the loss of reading key sentences and encoding key words."""

from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.registration import register


@register
class KeyVecLoss(keras.losses.Loss):
    """Adds up the two parts of the loss of `KeyVec` for each document.

        L_read = sum_{i in S*} log p_i + sum_{i not in S*} log(1 - p_i)
        L_enc = sum_{w in W} log softmax(W_v d + b_v)_w
        loss = -(L_read + L_enc)

    Eq. (4) to (6) of Bi and Ma 2017: S* are the key sentences of a document,
    W its key words. The loss of a batch is the mean over its documents.

    Both parts are sums in the paper, so that a document of many sentences has
    more weight than a short one, and its L_read more than its L_enc.
    `normalize` makes both parts means.

    Args:
        read_weight: Factor of L_read. Default 1; 0 leaves it out.
        word_weight: Factor of L_enc. Default 1; 0 leaves it out.
        normalize: Whether L_read is divided by the number of sentences, and
            L_enc by the number of key words. Default `False`, as printed.
        reduction: See `keras.losses.Loss`. Default: the mean.
        name: Name of the loss.
        dtype: See `keras.losses.Loss`.

    Call arguments:
        y_true: Float `(documents, 2)`, the numbers of sentences and of key
            words of each document.
        y_pred: Float `(documents, 2)`, -L_read and -L_enc as printed; see
            `read_costs` and `word_costs`.

    Raises:
        InputError: A factor is negative or not finite.

    Example:
    >>> loss = KeyVecLoss(normalize=True)
    >>> float(loss(np.array([[4.0, 3.0]]), np.array([[2.0, 6.0]])))
    2.5
    """

    def __init__(
        self,
        read_weight: float = 1.0,
        word_weight: float = 1.0,
        normalize: bool = False,
        reduction: str = "sum_over_batch_size",
        name: str = "keyvec_loss",
        dtype: Any = None,
    ) -> None:
        super().__init__(name=name, reduction=reduction, dtype=dtype)
        for factor in (read_weight, word_weight):
            if not 0 <= factor < float("inf"):
                raise InputError(
                    "read_weight and word_weight must be 0 or more, not "
                    f"{factor}"
                )
        self.read_weight = read_weight
        self.word_weight = word_weight
        self.normalize = normalize

    @staticmethod
    def read_costs(
        logits: tf.Tensor, salient: tf.Tensor, document: tf.Tensor
    ) -> tf.Tensor:
        """Computes -L_read of each document, eq. (5).

        Args:
            logits: Float `(n,)`, the logits of p_i of all sentences.
            salient: bool `(n,)`, whether a sentence is in S*.
            document: int32 `(n,)`, the document of each sentence: ascending,
                with at least one sentence for each document.

        Returns:
            Float `(documents,)`.
        """
        costs = tf.nn.sigmoid_cross_entropy_with_logits(
            tf.cast(salient, logits.dtype), logits
        )
        return tf.math.segment_sum(costs, document)

    @staticmethod
    def word_costs(
        logits: tf.Tensor, words: tf.Tensor, document: tf.Tensor
    ) -> tf.Tensor:
        """Computes -L_enc of each document, eq. (6).

        Args:
            logits: Float `(documents, vocabulary)`, W_v d + b_v.
            words: int32 `(m,)`, columns of `logits`: the key words of all
                documents.
            document: int32 `(m,)`, the document of each key word. One
                without key words has an L_enc of 0.

        Returns:
            Float `(documents,)`.
        """
        log_p = tf.nn.log_softmax(logits)
        chosen = tf.gather_nd(log_p, tf.stack([document, words], axis=1))
        return -tf.math.unsorted_segment_sum(
            chosen, document, tf.shape(logits)[0]
        )

    def parts(self, counts: tf.Tensor, costs: tf.Tensor) -> tf.Tensor:
        """Returns both parts, normalised if required, without their factors.

        Args:
            counts: As `y_true`.
            costs: As `y_pred`.

        Returns:
            Float `(documents, 2)`.
        """
        return costs / tf.maximum(counts, 1) if self.normalize else costs

    def call(self, y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
        """Returns the loss of each document, `(documents,)`."""
        weights = tf.constant(
            [self.read_weight, self.word_weight], y_pred.dtype
        )
        return tf.linalg.matvec(self.parts(y_true, y_pred), weights)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor arguments as a dict, for `from_config`."""
        return {
            **super().get_config(),
            "read_weight": self.read_weight,
            "word_weight": self.word_weight,
            "normalize": self.normalize,
        }
