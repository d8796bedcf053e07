"""MaskedConvolution: 1-D convolution over texts of different lengths."""

from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.layers.scoring_mlp import small_uniform
from keras_lstm_dssm.private_api import accept_any_arguments
from keras_lstm_dssm.registration import register

PADDINGS = ("wide", "narrow")


def zero_padding(values: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
    """Set the values past the end of each text to 0.

    Args:
        values: Float `[texts, time, features]`.
        lengths: int32 `[texts]`.

    Returns:
        Float `[texts, time, features]`.
    """
    mask = tf.sequence_mask(lengths, tf.shape(values)[1])
    return tf.where(mask[:, :, tf.newaxis], values, tf.zeros([], values.dtype))


def fixed_time(
    values: tf.Tensor, lengths: tf.Tensor, time: int
) -> tuple[tf.Tensor, tf.Tensor]:
    """Pad with zeros or cut texts to a fixed length.

    Args:
        values: Float `[texts, any, features]`.
        lengths: int32 `[texts]`.
        time: The fixed length.

    Returns:
        Float `[texts, time, features]`, 0 past the end of a text; and the
        lengths, at most `time`.
    """
    lengths = tf.minimum(lengths, time)
    values = zero_padding(values[:, :time], lengths)
    missing = time - tf.shape(values)[1]
    values = tf.pad(values, [[0, 0], [0, missing], [0, 0]])
    return tf.ensure_shape(values, [None, time, None]), lengths


def masked_max_pool(
    values: tf.Tensor, lengths: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Take the maximum of each window of two, windows do not overlap.

        z_i = max(z_{2i-1}, z_{2i})

    Positions past the end of a text do not take part, so that the last
    window of a text has one position where its length is odd.

    Args:
        values: Float `[texts, time, features]`.
        lengths: int32 `[texts]`.

    Returns:
        Float `[texts, ceil(time / 2), features]`, 0 past the end; and the
        lengths, halved and rounded up.
    """
    mask = tf.sequence_mask(lengths, tf.shape(values)[1])[:, :, tf.newaxis]
    values = tf.where(mask, values, tf.constant(values.dtype.min, values.dtype))
    values = tf.nn.max_pool1d(values, 2, 2, "SAME")
    lengths = (lengths + 1) // 2
    return zero_padding(values, lengths), lengths


@register
class MaskedConvolution(keras.layers.Layer):
    """Applies filters to each window of words, texts have their own lengths.

        z_i = g_i f(W [x_i; ..; x_{i+width-1}] + b)

    The vectors past the end of a text count as zero, whatever they are. The
    gate g of Hu et al. 2014 is 0 where all of the window is padding, else 1;
    it depends on the lengths alone, so that a window of real words is never
    taken for padding.

    Args:
        filters: Number of filters.
        width: Number of words in a window. Default 3.
        padding: `"wide"` (default) for all windows with at least one word,
            `length + width - 1` of them; or `"narrow"` for the windows that
            begin at a word and end before the end of the time axis. Use
            `"narrow"` on a time axis of a fixed length, see `fixed_time`,
            because texts that reach its end have fewer windows.
        activation: The f, a name that Keras knows. Default `None`, linear.
        use_bias: Whether there is a b. Default `True`.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        vectors: Float `(texts, time, features)`.
        lengths: int32 `(texts,)`, at least 1.

    Returns:
        Float `(texts, new time, filters)`, 0 past the end of a text, and the
        numbers of windows, int32 `(texts,)`. The new time is `time + width -
        1` if wide, `time - width + 1` if narrow.

    Raises:
        InputError: An argument is not supported.

    Example:
    >>> values, lengths = MaskedConvolution(7)(tf.ones([2, 5, 4]), [5, 2])
    >>> values.shape, lengths.numpy()
    (TensorShape([2, 7, 7]), array([7, 4], dtype=int32))
    """

    def __init__(
        self,
        filters: int,
        width: int = 3,
        padding: str = "wide",
        activation: str | None = None,
        use_bias: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if filters < 1 or width < 1:
            raise InputError(
                f"filters and width must be at least 1, not {filters} and "
                f"{width}"
            )
        if padding not in PADDINGS:
            raise InputError(
                f"padding must be one of {PADDINGS}, not {padding!r}"
            )
        self.filters = filters
        self.width = width
        self.padding = padding
        self.activation = activation
        self.use_bias = use_bias
        self.convolution = keras.layers.Conv1D(
            filters,
            width,
            data_format="channels_last",
            activation=activation,
            use_bias=use_bias,
            kernel_initializer=small_uniform(),
            dtype=self.dtype_policy,
            name="convolution",
        )
        accept_any_arguments(self)  # such as a list of lengths

    def build(self, input_shape: Any) -> None:
        """Create the weights.

        Args:
            input_shape: `(texts, time, features)`.
        """
        self.convolution.build((None, None, input_shape[-1]))

    def call(
        self, vectors: tf.Tensor, lengths: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Compute the values of the windows."""
        lengths = tf.convert_to_tensor(lengths, tf.int32)
        vectors = zero_padding(vectors, lengths)
        outside = self.width - 1
        if self.padding == "wide":
            vectors = tf.pad(vectors, [[0, 0], [outside, outside], [0, 0]])
            lengths += outside
        else:
            lengths = tf.minimum(lengths, tf.shape(vectors)[1] - outside)
        return zero_padding(self.convolution(vectors), lengths), lengths

    def get_config(self) -> dict[str, Any]:
        """Return the constructor arguments as a dict, for `from_config`."""
        return {
            **super().get_config(),
            "filters": self.filters,
            "width": self.width,
            "padding": self.padding,
            "activation": self.activation,
            "use_bias": self.use_bias,
        }
