"""OrderedKMax: the k largest values of each feature, in their order."""

from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.private_api import accept_any_arguments
from keras_lstm_dssm.registration import register


def dynamic_k(
    lengths: tf.Tensor,
    layer: int,
    layers: int,
    k_top: int,
    k_min: int | None = None,
) -> tf.Tensor:
    """Compute how many values a convolutional layer keeps of each text.

        k_l = max(k_min, ceil((L - l) / L * n)) for l < L;  k_L = k_top

    Qiu and Huang 2015, after Kalchbrenner et al. 2014, with k_min = k_top;
    the programs of Wan et al. 2016 have k_top = 1 and k_min = 4.

    Args:
        lengths: int32 `[texts]`, n, the number of words of each text.
        layer: l, the number of the layer, from 1.
        layers: L, the number of layers.
        k_top: The k of the last layer.
        k_min: The smallest k of the other layers. Default `None`, `k_top`.

    Returns:
        int32 `[texts]`.

    Example:
    >>> dynamic_k(tf.constant([9, 2]), 1, 2, k_top=3).numpy()
    array([5, 3], dtype=int32)
    """
    if layer == layers:
        return tf.fill(tf.shape(lengths), k_top)
    share = ((layers - layer) * lengths + layers - 1) // layers
    return tf.maximum(share, k_top if k_min is None else k_min)


@register
class OrderedKMax(keras.layers.Layer):
    """Keeps the k largest values of each feature, in the order of the text.

    The values keep their order in time, they are not sorted by size. k may
    differ between texts. Of equal values the first ones are kept.

    Args:
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        values: Float `(texts, time, features)`.
        lengths: int32 `(texts,)`, the real positions of each text, at
            least 1. Padding is never chosen.
        k: int32 `(texts,)`, at least 1.

    Returns:
        Float `(texts, largest k, features)`, and the new lengths, int32
        `(texts,)`: the smaller of k and the length. Positions past the new
        length are 0; `tf.sequence_mask` of the new lengths is their mask.

    Example:
    >>> values = tf.constant([[[3.0], [1.0], [2.0], [4.0]]])
    >>> OrderedKMax()(values, [4], [3])[0][0, :, 0].numpy()
    array([3., 2., 4.], dtype=float32)
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        accept_any_arguments(self)  # such as a list of lengths

    def call(
        self, values: tf.Tensor, lengths: tf.Tensor, k: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Choose the values."""
        lengths = tf.convert_to_tensor(lengths, tf.int32)
        k = tf.convert_to_tensor(k, tf.int32)
        counts = tf.minimum(k, lengths)
        features, time = values.shape[2], tf.shape(values)[1]
        values = tf.transpose(values, [0, 2, 1])  # [texts, features, time]
        real = tf.sequence_mask(lengths, time)[:, tf.newaxis]
        lowest = tf.constant(values.dtype.min, values.dtype)
        largest = tf.reduce_max(counts)
        index = tf.math.top_k(
            tf.where(real, values, lowest), largest, sorted=True
        ).indices
        kept = tf.sequence_mask(counts, largest)[:, tf.newaxis]
        # Sorting brings the positions into the order of the text; those
        # beyond k come last.
        index = tf.sort(tf.where(kept, index, time))
        chosen = tf.gather(values, tf.minimum(index, time - 1), batch_dims=2)
        chosen = tf.where(kept, chosen, tf.zeros([], values.dtype))
        missing = tf.reduce_max(k) - largest
        chosen = tf.pad(chosen, [[0, 0], [0, 0], [0, missing]])
        chosen = tf.transpose(chosen, [0, 2, 1])
        return tf.ensure_shape(chosen, [None, None, features]), counts
