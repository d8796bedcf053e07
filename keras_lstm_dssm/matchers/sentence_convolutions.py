"""Matchers of convolved sentences: ARC-I and ARC-II of Hu et al., and CNTN."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.errors import (
    InputError,
    check_at_least,
    check_each_at_least,
)
from keras_lstm_dssm.layers.convolution import (
    ConvolutionStack,
    Features,
    KMaxStack,
    MaskedConvolution,
    ScoringMLP,
    WindowPoolingStack,
    fixed_time,
    halved_time,
    masked_max_pool,
    small_uniform,
)
from keras_lstm_dssm.layers.word_vectors import WordSequences
from keras_lstm_dssm.matchers.matcher import SIDES, Matcher
from keras_lstm_dssm.registration import register


@register
class ARCI(Matcher):
    """Represents each text by convolutions, then compares them with an MLP.

        s = MLP([S_X; S_Y])

    ARC-I of Hu et al. 2014: S_X and S_Y are the flattened outputs of two
    convolutional networks with weights of their own, see
    `WindowPoolingStack`. With `pooling="k_max"` it is the smaller network
    that Wan et al. 2016 compared with, see `KMaxStack`, the preset `arc_i_wan`.

    Args:
        word_dimension: Width of the word vectors. Default 50.
        filters: Number of filters of each convolution. Default 200 and 200;
            the paper has 200 to 500.
        width: Number of words in a window. Default 3.
        activation: Name of the activation of the convolutions. Default
            `"relu"`.
        use_bias: Whether the convolutions have a bias. Default `True`.
        pooling: `"windows"` (default), narrow convolutions with a maximum
            over windows of two; or `"k_max"`, wide convolutions with dynamic
            k-max pooling, k_min 4 and k_top 1.
        hidden: Widths of the hidden layers of the MLP. Default 200 (not
            stated in the paper).
        max_words: The fixed length of texts with `pooling="windows"`.
            Default 50; longer texts are cut.
        **kwargs: Arguments of `Matcher`.

    Raises:
        InputError: An argument is not supported.

    Example:
    >>> ARCI(word_dimension=50)(query, document).shape
    TensorShape([3])
    """

    def __init__(
        self,
        word_dimension: int = 50,
        filters: Sequence[int] = (200, 200),
        width: int = 3,
        activation: str = "relu",
        use_bias: bool = True,
        pooling: str = "windows",
        hidden: Sequence[int] = (200,),
        max_words: int = 50,
        **kwargs: Any,
    ) -> None:
        super().__init__(word_dimension, **kwargs)
        if pooling not in ("windows", "k_max"):
            raise InputError(
                f"pooling must be 'windows' or 'k_max', not {pooling!r}"
            )
        self.filters = list(filters)
        self.width = width
        self.activation = activation
        self.use_bias = use_bias
        self.pooling = pooling
        self.hidden = list(hidden)
        self.max_words = max_words
        self.query_stack = self._stack("query_stack")
        self.document_stack = self._stack("document_stack")
        self.mlp = ScoringMLP(hidden, dtype=self.dtype_policy, name="mlp")
        self.mlp.build((None, len(SIDES) * self.query_stack.flat_width))
        self.built = True

    def _stack(self, name: str) -> ConvolutionStack:
        arguments: dict[str, Any] = {
            "filters": self.filters,
            "width": self.width,
            "activation": self.activation,
            "use_bias": self.use_bias,
            "dtype": self.dtype_policy,
            "name": name,
        }
        stack: ConvolutionStack
        if self.pooling == "windows":
            stack = WindowPoolingStack(max_words=self.max_words, **arguments)
        else:
            stack = KMaxStack(k_top=1, k_min=4, **arguments)
        stack.build((None, None, self.word_dimension))
        return stack

    def represent(
        self, texts: WordSequences, side: str, training: bool = False
    ) -> tf.Tensor:
        """Encodes texts by their side's convolutions, `[texts, features]`."""
        stack = self.query_stack if side == "query" else self.document_stack
        return stack.flat(texts.vectors, texts.lengths)

    def match(
        self, query: tf.Tensor, document: tf.Tensor, training: bool = False
    ) -> tf.Tensor:
        """Scores pairs of encoded texts by an MLP."""
        return self.mlp(tf.concat([query, document], axis=1))


@register
class ARCII(Matcher):
    """Convolves over all pairs of windows of the two texts, then an MLP.

        z_ij = g_ij relu(W [x_i..x_{i+width-1}; y_j..y_{j+width-1}] + b)

    ARC-II of Hu et al. 2014: after this first layer come a maximum over
    windows of 2 x 2, further 2-D convolutions each with such a maximum, and
    the MLP. g is 0 for the pairs of windows of which one is padding, so that
    padding takes part in no maximum. (The paper's g is 0 if both are.)

    W = [W_x; W_y], so the first layer is the sum of two 1-D convolutions,
    A_i + C_j, before the relu. The maximum of such a sum over a rectangle is
    the sum of the maxima over its sides, and relu is monotone: the first
    maximum is taken of A and of C alone, which gives the same values at a
    quarter of the cells.

    Args:
        word_dimension: Width of the word vectors. Default 50.
        filters: Number of filters of the first layer and of each 2-D
            convolution. Default 50, 50 and 50; the paper has 200 to 500.
        width: Number of words in a window, and of rows and columns in one of
            a 2-D convolution. Default 3.
        padding: Of the first layer, `"narrow"` (default) or `"wide"`, see
            `MaskedConvolution`. 2-D convolutions are narrow.
        hidden: Widths of the hidden layers of the MLP. Default 200 (not
            stated in the paper).
        max_words: The fixed length of texts. Default 50; longer texts are
            cut.
        **kwargs: Arguments of `Matcher`.

    Raises:
        InputError: An argument is not supported, or `max_words` is too small
            for so many layers.

    Example:
    >>> ARCII(word_dimension=50)(query, document).shape
    TensorShape([3])
    """

    def __init__(
        self,
        word_dimension: int = 50,
        filters: Sequence[int] = (50, 50, 50),
        width: int = 3,
        padding: str = "narrow",
        hidden: Sequence[int] = (200,),
        max_words: int = 50,
        **kwargs: Any,
    ) -> None:
        super().__init__(word_dimension, **kwargs)
        if not filters:
            raise InputError("filters must have a number for each convolution")
        check_each_at_least(1, filters=filters)
        self.filters = list(filters)
        self.width = width
        self.padding = padding
        self.hidden = list(hidden)
        self.max_words = max_words
        # Both sides together have one bias, that of the query's side.
        self.first = [
            MaskedConvolution(
                self.filters[0],
                width,
                padding,
                use_bias=side == "query",
                dtype=self.dtype_policy,
                name=f"{side}_convolution",
            )
            for side in SIDES
        ]
        for layer in self.first:
            layer.build((None, None, word_dimension))
        self.convolutions = []
        for number, count in enumerate(self.filters[1:], 2):
            convolution = keras.layers.Conv2D(
                count,
                width,
                data_format="channels_last",
                activation="relu",
                kernel_initializer=small_uniform(),
                dtype=self.dtype_policy,
                name=f"convolution_{number}",
            )
            convolution.build((None, None, None, self.filters[number - 2]))
            self.convolutions.append(convolution)
        # A wide convolution is a narrow one of a text with zeros around it.
        zeros = 2 * (width - 1) if padding == "wide" else 0
        size = halved_time(max_words + zeros, width, len(self.filters))
        self.mlp = ScoringMLP(hidden, dtype=self.dtype_policy, name="mlp")
        self.flat_width = size * size * self.filters[-1]
        self.mlp.build((None, self.flat_width))
        self.built = True

    def represent(
        self, texts: WordSequences, side: str, training: bool = False
    ) -> Features:
        """Computes each text's part of the first convolution, and its maxima.

        The convolution over pairs of windows is the sum of a part for
        each text.
        """
        values, lengths = fixed_time(
            texts.vectors, texts.lengths, self.max_words
        )
        values, lengths = self.first[SIDES.index(side)](values, lengths)
        return Features(*masked_max_pool(values, lengths))

    def match(
        self, query: Features, document: Features, training: bool = False
    ) -> tf.Tensor:
        """Scores pairs: adds both parts, then 2-D convolutions and an MLP."""
        rows, columns = query.lengths, document.lengths
        sums = query.values[:, :, tf.newaxis] + document.values[:, tf.newaxis]
        values = zero_padding_2d(tf.nn.relu(sums), rows, columns)
        for convolution in self.convolutions:
            size = tf.shape(values)[1] - self.width + 1
            rows, columns = tf.minimum(rows, size), tf.minimum(columns, size)
            values = zero_padding_2d(convolution(values), rows, columns)
            # After relu and g no value is below 0, so that padding, which
            # is 0, changes no maximum.
            values = tf.nn.max_pool2d(values, 2, 2, "SAME")
            rows, columns = (rows + 1) // 2, (columns + 1) // 2
        return self.mlp(tf.reshape(values, [-1, self.flat_width]))


def zero_padding_2d(
    cells: tf.Tensor, rows: tf.Tensor, columns: tf.Tensor
) -> tf.Tensor:
    """Sets cells `[pairs, m, n, channels]` past the last row or column to 0."""
    shape = tf.shape(cells)
    real_rows = tf.sequence_mask(rows, shape[1])[:, :, tf.newaxis, tf.newaxis]
    real_columns = tf.sequence_mask(columns, shape[2])[:, tf.newaxis, :]
    real = tf.logical_and(real_rows, real_columns[..., tf.newaxis])
    return tf.where(real, cells, tf.zeros([], cells.dtype))


@register
class CNTN(Matcher):
    """Compares two sentence vectors by a neural tensor layer.

        s = u' tanh(v_q' M^[1:r] v_a + V [v_q; v_a] + b)

    Convolutional neural tensor network of Qiu and Huang 2015. Each text has a
    vector v, made by convolutions with dynamic k-max pooling, see
    `KMaxStack`, and a dense layer. Queries and documents have weights of
    their own. The defaults for the sizes are those of public
    implementations; the smaller form that Wan et al. 2016 compared with is
    the preset `cntn_wan`.

    Args:
        word_dimension: Width of the word vectors. Default 50.
        filters: Number of filters of each convolution. Default 50 and 50
            (not stated in the paper).
        width: Number of words in a window. Default 3.
        use_bias: Whether the convolutions have a bias. Default `True`.
        k_top: How many values of each feature the last pooling keeps.
            Default 10.
        k_min: The smallest number that the other poolings keep. Default
            `None`, `k_top`.
        dimension: Width of the sentence vector, the outputs of the dense
            layer, which has a tanh (not stated in the paper). Default 200;
            `None` for the values of the last pooling, without dense layer.
        slices: The r, number of slices of the tensor. Default 5.
        **kwargs: Arguments of `Matcher`.

    Raises:
        InputError: An argument is not supported.

    Example:
    >>> CNTN(word_dimension=50)(query, document).shape
    TensorShape([3])
    """

    def __init__(
        self,
        word_dimension: int = 50,
        filters: Sequence[int] = (50, 50),
        width: int = 3,
        use_bias: bool = True,
        k_top: int = 10,
        k_min: int | None = None,
        dimension: int | None = 200,
        slices: int = 5,
        **kwargs: Any,
    ) -> None:
        super().__init__(word_dimension, **kwargs)
        check_at_least(1, slices=slices)
        check_at_least(1, optional=True, dimension=dimension)
        self.filters = list(filters)
        self.width = width
        self.use_bias = use_bias
        self.k_top = k_top
        self.k_min = k_min
        self.dimension = dimension
        self.slices = slices
        self.stacks = [self._stack(f"{side}_stack") for side in SIDES]
        size = self.stacks[0].flat_width
        self.dense = []
        if dimension is not None:
            self.dense = [
                keras.layers.Dense(
                    dimension,
                    "tanh",
                    kernel_initializer=small_uniform(),
                    dtype=self.dtype_policy,
                    name=f"{side}_dense",
                )
                for side in SIDES
            ]
            for layer in self.dense:
                layer.build((None, size))
            size = dimension
        self.tensor = self._weight((slices, size, size), "tensor")
        self.projection = self._weight((2 * size, slices), "projection")
        self.bias = self.add_weight(
            shape=(slices,), initializer="zeros", name="bias"
        )
        # Zeros: all scores are 0 at the start.
        self.combination = self.add_weight(
            shape=(slices,), initializer="zeros", name="combination"
        )
        self.built = True

    def _stack(self, name: str) -> KMaxStack:
        stack = KMaxStack(
            self.filters,
            self.width,
            use_bias=self.use_bias,
            k_top=self.k_top,
            k_min=self.k_min,
            dtype=self.dtype_policy,
            name=name,
        )
        stack.build((None, None, self.word_dimension))
        return stack

    def _weight(self, shape: tuple[int, ...], name: str) -> keras.Variable:
        return self.add_weight(
            shape=shape, initializer=small_uniform(), name=name
        )

    def represent(
        self, texts: WordSequences, side: str, training: bool = False
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Computes the vectors, and what the tensor layer needs of each.

        Returns:
            Of queries v_q' M^[1:r] `[texts, r, size]`, of documents v_a
            `[texts, size]`; and of both the side's part of V [v_q; v_a]
            `[texts, r]`.
        """
        number = SIDES.index(side)
        vectors = self.stacks[number].flat(texts.vectors, texts.lengths)
        if self.dense:
            vectors = self.dense[number](vectors)
        tensor = tf.convert_to_tensor(self.tensor)
        projection = tf.split(tf.convert_to_tensor(self.projection), 2)[number]
        linear = tf.matmul(vectors, projection)
        if side == "query":
            vectors = tf.einsum("td,rde->tre", vectors, tensor)
        return vectors, linear

    def match(
        self,
        query: tuple[tf.Tensor, tf.Tensor],
        document: tuple[tf.Tensor, tf.Tensor],
        training: bool = False,
    ) -> tf.Tensor:
        """Scores pairs: multiplies and adds the parts of both texts."""
        products = tf.einsum("pre,pe->pr", query[0], document[0])
        hidden = tf.tanh(products + query[1] + document[1] + self.bias)
        return tf.linalg.matvec(hidden, self.combination)
