"""Losses of two towers, of pair scorers and of KeyVec."""

from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.ops import custom_gradient
from keras_lstm_dssm.registration import Configured, register

__all__ = ["CosineSoftmax", "KeyVecLoss", "PairwiseHinge"]


@register
class CosineSoftmax(Configured, keras.losses.Loss):
    """Computes the negative log likelihood of clicks from scaled cosines.

        l_r = -log( exp(g R(Q,D+)) / sum over D of exp(g R(Q,D)) )
            = log(1 + sum over j of exp(-g (R(Q,D+) - R(Q,D_j-))))

    Palangi et al. 2016, eq. (5), for a query Q, its clicked document D+, its
    negatives D_j-, and its candidates D, which are D+ and all D_j-. R is the
    cosine. The paper sums l_r over a batch (`reduction="sum"`).

    Args:
        gamma: The scale g, to be chosen on held-out data. Default 10.
        reduction (default: mean), name, dtype: See `keras.losses.Loss`.

    Call arguments:
        y_true: `(batch, candidates)`: 1 for the clicked document, 0 for a
            negative, -1 for a document to leave out, such as a random negative
            that equals the clicked document. Or `(batch,)`: the index of the
            clicked document; all other documents are then negatives.
        y_pred: Cosines R, `(batch, candidates)`.

    Raises:
        InputError: `y_true` has indices, but the dtype of the loss is neither
            float32 nor float64.

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
        """Whether `y_true` may have the indices of the clicked documents.

        A subclass sets `takes_indices = False` if its `call` takes no indices.
        """
        # Keras casts `y_true` to the dtype of the loss; smaller dtypes cannot
        # represent all indices.
        return self.dtype in ("float32", "float64")

    def call(self, y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
        """Returns l_r of each query, `(batch,)`."""
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
        clicked_cells = tf.stack([rows, clicked], axis=1)

        # This loss with its gradient takes 0.6 of the time of TensorFlow's
        # softmax cross-entropy, or 0.3 of the time if labels are indices. With
        # p = softmax(g R),
        #     dl_r / dR(Q,D) = g (p(D) - [D is the clicked document]).
        @custom_gradient
        def losses(cosines: tf.Tensor) -> Any:
            scaled = gamma * cosines
            if left_out is not None:
                scaled = tf.where(left_out, cosines.dtype.min, scaled)
            largest = tf.reduce_max(scaled, axis=-1, keepdims=True)
            exponentials = tf.exp(scaled - largest)
            total = tf.reduce_sum(exponentials, axis=-1, keepdims=True)
            log_sum = (tf.math.log(total) + largest)[:, 0]

            def gradient(error: tf.Tensor) -> tf.Tensor:
                scale = gamma * error
                gradients = exponentials * (scale[:, tf.newaxis] / total)
                return tf.tensor_scatter_nd_sub(gradients, clicked_cells, scale)

            return log_sum - tf.gather_nd(scaled, clicked_cells), gradient

        return losses(y_pred)


@register
class KeyVecLoss(Configured, keras.losses.Loss):
    """Computes the loss of `KeyVec` for each document, a sum of two parts.

        L_read = sum_{i in S*} log p_i + sum_{i not in S*} log(1 - p_i)
        L_enc = sum_{w in W} log softmax(W_v d + b_v)_w
        loss = -(L_read + L_enc)

    Eq. (4) to (6) of Bi and Ma 2017. S* is the set of a document's key
    sentences, and W the set of its key words. p_i is the probability that
    sentence i is a key sentence. d is the document's vector. W_v and b_v are
    weights. Long documents have a larger loss, unless `normalize` is set.

    Args:
        read_weight: Factor of L_read. Default 1.
        word_weight: Factor of L_enc. Default 1.
        normalize: Whether L_read is divided by the number of sentences, and
            L_enc by the number of key words. Default `False`, as in the paper.
        reduction (default: mean), name, dtype: See `keras.losses.Loss`.

    Call arguments:
        y_true: Float `(documents, 2)`, the numbers of sentences and of key
            words of each document.
        y_pred: Float `(documents, 2)`, -L_read and -L_enc of each document,
            from `read_costs` and `word_costs`.

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
                    "read_weight and word_weight must be finite and 0 or more,"
                    f" not {factor}"
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
            salient: bool `(n,)`, whether each sentence is in S*.
            document: int32 `(n,)`, the index of each sentence's document,
                ascending. Each document has at least one sentence.

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
            words: int32 `(m,)`, the key words of all documents, as indices of
                columns of `logits`.
            document: int32 `(m,)`, the index of each key word's document. For
                a document without key words, L_enc is 0.

        Returns:
            Float `(documents,)`.
        """
        log_p = tf.nn.log_softmax(logits)
        chosen = tf.gather_nd(log_p, tf.stack([document, words], axis=1))
        return -tf.math.unsorted_segment_sum(
            chosen, document, tf.shape(logits)[0]
        )

    def parts(self, counts: tf.Tensor, costs: tf.Tensor) -> tf.Tensor:
        """Returns -L_read and -L_enc, divided by the counts if `normalize`.

        `counts` and `costs` are `y_true` and `y_pred` of `call`.
        """
        return costs / tf.maximum(counts, 1) if self.normalize else costs

    def call(self, y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
        """Returns the loss of each document, `(documents,)`."""
        weights = tf.constant(
            [self.read_weight, self.word_weight], y_pred.dtype
        )
        return tf.linalg.matvec(self.parts(y_true, y_pred), weights)


@register
class PairwiseHinge(Configured, keras.losses.Loss):
    """Computes the pairwise hinge loss of a positive and its negatives.

        l = max(0, margin + s(Q, D-) - s(Q, D+))

    Wan et al. 2016, section "Model Training", with margin 1. The loss of a
    query is the mean over its negatives.

    Args:
        margin: The loss is 0 if the positive's score is higher than the
            negative's score by `margin` or more. Default 1.
        reduction (default: mean), name, dtype: See `keras.losses.Loss`.

    Call arguments:
        y_true: `(batch, candidates)`: 1 for the single positive of a query, 0
            for its negatives.
        y_pred: Scores, `(batch, candidates)`.

    Raises:
        tf.errors.InvalidArgumentError: A query has no positive, or several.

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
        """Returns the loss of each query, `(batch,)`."""
        is_positive = y_true > 0
        count = tf.math.count_nonzero(is_positive, axis=-1)
        message = "PairwiseHinge needs exactly one positive in each row, found:"
        check = tf.Assert(tf.reduce_all(count == 1), [message, count])
        with tf.control_dependencies([check]):
            positive = tf.where(is_positive, y_pred, 0)
            positive = tf.reduce_sum(positive, axis=-1, keepdims=True)
        violation = tf.nn.relu(self.margin + y_pred - positive)
        negatives = tf.cast(tf.logical_not(is_positive), y_pred.dtype)
        return tf.math.divide_no_nan(
            tf.reduce_sum(violation * negatives, axis=-1),
            tf.reduce_sum(negatives, axis=-1),
        )
