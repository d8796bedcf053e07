"""Layers of pair scorers: stacks of convolution and pooling, and an MLP."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.errors import (
    InputError,
    check_at_least,
    check_choice,
    check_each_at_least,
)
from keras_lstm_dssm.layers.pooling import OrderedKMax, dynamic_k
from keras_lstm_dssm.private_api import accept_any_arguments
from keras_lstm_dssm.registration import Configured, register


def small_uniform(
    limit: float = 0.1, seed: int | None = None
) -> keras.initializers.Initializer:
    """Returns a new initializer U(-limit, limit); Wan et al. 2016 use 0.1."""
    return keras.initializers.RandomUniform(-limit, limit, seed)


def near_identity() -> Callable[..., tf.Tensor]:
    """Returns a new initializer: the identity plus U(-0.01, 0.01)."""
    noise = small_uniform(0.01)

    def initialize(shape: Any, dtype: Any = None) -> tf.Tensor:
        identity = tf.eye(shape[-1], dtype=dtype or keras.config.floatx())
        return identity + noise(shape, dtype)

    return initialize


@register
class ScoringMLP(Configured, keras.layers.Layer):
    """Scores features q, `(pairs, width)`, by an MLP; untrained scores are 0.

    r = f(W_r q + b_r) for each hidden layer;  s = W_s r + b_s
    """

    def __init__(
        self,
        hidden: Sequence[int] = (200,),
        activation: str = "relu",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.hidden = list(hidden)
        self.activation = activation
        check_each_at_least(1, hidden=self.hidden)
        self.dense = [
            keras.layers.Dense(
                width,
                activation,
                kernel_initializer=small_uniform(),
                dtype=self.dtype_policy,
                name=f"hidden_{number}",
            )
            for number, width in enumerate(self.hidden)
        ]
        self.score = keras.layers.Dense(
            1, kernel_initializer="zeros", dtype=self.dtype_policy, name="score"
        )

    def build(self, input_shape: Any) -> None:
        """Creates the weights."""
        width = input_shape[-1]
        for layer in [*self.dense, self.score]:
            layer.build((None, width))
            width = layer.units

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Computes the scores."""
        values = inputs
        for layer in self.dense:
            values = layer(values)
        return self.score(values)[:, 0]

    def by_numpy(self, values: np.ndarray) -> np.ndarray:
        """Computes the scores by NumPy, in a quarter of TensorFlow's time."""
        for layer in (*self.dense, self.score):
            kernel, bias = map(np.asarray, (layer.kernel, layer.bias))
            values = np.asarray(layer.activation(values @ kernel + bias))
        return values[:, 0]


PADDINGS = ("wide", "narrow")


def zero_padding(values: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
    """Sets values `[texts, time, features]` past the end of each text to 0."""
    mask = tf.sequence_mask(lengths, tf.shape(values)[1])
    return tf.where(mask[:, :, tf.newaxis], values, tf.zeros([], values.dtype))


def fixed_time(
    values: tf.Tensor, lengths: tf.Tensor, time: int
) -> tuple[tf.Tensor, tf.Tensor]:
    """Pads or cuts texts to length `time`; returns values and new lengths."""
    lengths = tf.minimum(lengths, time)
    values = zero_padding(values[:, :time], lengths)
    missing = time - tf.shape(values)[1]
    values = tf.pad(values, [[0, 0], [0, missing], [0, 0]])
    return tf.ensure_shape(values, [None, time, None]), lengths


def masked_max_pool(
    values: tf.Tensor, lengths: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Computes max(z_{2i-1}, z_{2i}) for each i; also returns new lengths."""
    mask = tf.sequence_mask(lengths, tf.shape(values)[1])[:, :, tf.newaxis]
    values = tf.where(mask, values, tf.constant(values.dtype.min, values.dtype))
    # A last position without a partner is kept (not stated in Hu et al. 2014).
    values = tf.nn.max_pool1d(values, 2, 2, "SAME")
    lengths = (lengths + 1) // 2
    return zero_padding(values, lengths), lengths


@register
class MaskedConvolution(Configured, keras.layers.Layer):
    """Computes z_i = g_i f(W [x_i; ..; x_{i+width-1}] + b), and new lengths.

    The gate g of Hu et al. 2014 is 0 if the whole window is padding, else 1.
    With the padding `"wide"`, z has a position for each window that contains a
    word. With `"narrow"`, z has a position for each window that starts at a
    word and fits in the time axis. The window may end in padding.
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
        check_at_least(1, filters=filters, width=width)
        check_choice(PADDINGS, padding=padding)
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
        accept_any_arguments(self)  # `lengths` may be a list

    def build(self, input_shape: Any) -> None:
        """Creates the weights."""
        self.convolution.build((None, None, input_shape[-1]))

    def call(
        self, vectors: tf.Tensor, lengths: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Computes z, and the number of positions of z for each text."""
        lengths = tf.convert_to_tensor(lengths, tf.int32)
        vectors = zero_padding(vectors, lengths)
        outside = self.width - 1
        if self.padding == "wide":
            vectors = tf.pad(vectors, [[0, 0], [outside, outside], [0, 0]])
            lengths += outside
        else:
            lengths = tf.minimum(lengths, tf.shape(vectors)[1] - outside)
        return zero_padding(self.convolution(vectors), lengths), lengths


class Features(NamedTuple):
    """Holds values, float `[texts, time, features]`, and lengths of texts."""

    values: tf.Tensor
    lengths: tf.Tensor


class ConvolutionStack(Configured, keras.layers.Layer):
    """Base of stacks of convolutions and poolings; creates the convolutions."""

    padding: str
    """`"wide"` or `"narrow"`; see `MaskedConvolution`."""

    time: int
    """Length of the time axis of the last `Features` that `call` returns."""

    def __init__(
        self,
        filters: Sequence[int],
        width: int,
        activation: str,
        use_bias: bool,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.filters = list(filters)
        self.width = width
        self.activation = activation
        self.use_bias = use_bias
        if not self.filters:
            raise InputError(
                "filters is empty: give a number of filters per convolution"
            )
        self.convolutions = [
            MaskedConvolution(
                count,
                width,
                self.padding,
                activation,
                use_bias,
                dtype=self.dtype_policy,
                name=f"convolution_{number}",
            )
            for number, count in enumerate(self.filters, 1)
        ]
        accept_any_arguments(self)  # `lengths` may be a list

    def build(self, input_shape: Any) -> None:
        """Creates the weights."""
        features = input_shape[-1]
        for convolution in self.convolutions:
            convolution.build((None, None, features))
            features = convolution.filters

    @property
    def flat_width(self) -> int:
        """Width of the vectors that `flat` returns."""
        return self.time * self.filters[-1]

    def flat(self, vectors: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
        """Flattens the last `Features` of `call`: `(texts, flat_width)`."""
        result = self(vectors, lengths)[-1]
        return tf.reshape(result.values, [-1, self.flat_width])


@register
class WindowPoolingStack(ConvolutionStack):
    """Alternates `MaskedConvolution` and `masked_max_pool`, Hu et al. 2014."""

    padding = "narrow"

    def __init__(
        self,
        filters: Sequence[int] = (200, 200),
        width: int = 3,
        activation: str = "relu",
        use_bias: bool = True,
        max_words: int = 50,
        **kwargs: Any,
    ) -> None:
        super().__init__(filters, width, activation, use_bias, **kwargs)
        self.max_words = max_words
        self.time = halved_time(max_words, width, len(self.filters))

    def call(self, vectors: tf.Tensor, lengths: tf.Tensor) -> list[Features]:
        """Returns the output of each pooling."""
        lengths = tf.convert_to_tensor(lengths, tf.int32)
        values, lengths = fixed_time(vectors, lengths, self.max_words)
        maps = []
        for convolution in self.convolutions:
            values, lengths = masked_max_pool(*convolution(values, lengths))
            maps.append(Features(values, lengths))
        return maps


@register
class KMaxStack(ConvolutionStack):
    """Stacks wide convolutions and k-max poolings, Kalchbrenner et al. 2014.

    z_l = the k_l largest values of each feature of f(W_l * z_{l-1} + b_l)

    `*` is a wide convolution. `dynamic_k` computes k_l.
    """

    padding = "wide"

    def __init__(
        self,
        filters: Sequence[int] = (50, 50),
        width: int = 3,
        activation: str = "tanh",
        use_bias: bool = True,
        k_top: int = 10,
        k_min: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(filters, width, activation, use_bias, **kwargs)
        self.k_top = self.time = k_top
        self.k_min = k_min
        check_at_least(1, k_top=k_top)
        check_at_least(1, optional=True, k_min=k_min)
        self.k_max = OrderedKMax(dtype=self.dtype_policy, name="k_max")

    def call(self, vectors: tf.Tensor, lengths: tf.Tensor) -> list[Features]:
        """Returns the outputs of the convolutions and of the last pooling."""
        words = tf.convert_to_tensor(lengths, tf.int32)
        layers, pooled = len(self.filters), Features(vectors, words)
        maps = []
        for layer, convolution in enumerate(self.convolutions, 1):
            maps.append(Features(*convolution(*pooled)))
            k = dynamic_k(words, layer, layers, self.k_top, self.k_min)
            pooled = Features(*self.k_max(*maps[-1], k))
        shape = [None, self.k_top, self.filters[-1]]
        top = tf.ensure_shape(pooled.values, shape)
        return [*maps, Features(top, pooled.lengths)]


def halved_time(time: int, width: int, layers: int) -> int:
    """Counts positions after convolution and pooling, `layers` times each."""
    size = time
    for _ in range(layers):
        size = (size - width + 2) // 2
        if size < 1:
            raise InputError(
                f"{time} positions are too few for {layers} convolutions of "
                f"width {width} with poolings; raise max_words, or give fewer "
                "numbers in filters"
            )
    return size
