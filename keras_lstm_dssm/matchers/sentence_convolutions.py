"""Convolutional matchers: ARC-I and ARC-II of Hu et al. 2014, and CNTN."""

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
    """Encodes each text by convolutions, and scores pairs by an MLP.

        s = MLP([S_X; S_Y])

    ARC-I of Hu et al. 2014. S_X and S_Y are the flattened outputs of two
    convolutional networks with separate weights. The preset `arc_i_wan`, a
    baseline of Wan et al. 2016, is smaller and has `pooling="k_max"`. See
    `Matcher` for the call arguments and the scores.

    Args:
        word_dimension: Width of the word vectors. Default 50.
        filters: Number of filters of each convolution. Default 200 and 200;
            the paper has 200 to 500.
        width: Number of words in a window. Default 3.
        activation: Name of the activation of the convolutions. Default
            `"relu"`.
        use_bias: Whether the convolutions have a bias. Default `True`.
        pooling: `"windows"` (default): narrow convolutions with a maximum
            over every two positions; or `"k_max"`: wide convolutions with
            dynamic k-max pooling, k_min 4 and k_top 1 (see `CNTN`).
        hidden: Widths of the hidden layers of the MLP. Default 200 (not
            stated in the paper).
        max_words: The fixed length of texts with `pooling="windows"`; longer
            texts are cut. Default 50.
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
        """Encodes texts by the side's convolutions, `[texts, features]`."""
        stack = self.query_stack if side == "query" else self.document_stack
        return stack.flat(texts.vectors, texts.lengths)

    def match(
        self, query: tf.Tensor, document: tf.Tensor, training: bool = False
    ) -> tf.Tensor:
        """Scores pairs of encoded texts by an MLP."""
        return self.mlp(tf.concat([query, document], axis=1))


@register
class ARCII(Matcher):
    """Convolves over all pairs of windows of both texts, then scores by an MLP.

        z_ij = g_ij relu(W [x_i..x_{i+width-1}; y_j..y_{j+width-1}] + b)

    ARC-II of Hu et al. 2014. The formula is the first layer; 2-D convolutions
    and an MLP follow. The output of the first layer and of each convolution is
    max-pooled over 2 x 2 cells. The gate g is 0 if window i or window j is
    padding, else 1. (In the paper g is 0 if both windows are padding.) See
    `Matcher` for the call arguments and the scores.

    Args:
        word_dimension: Width of the word vectors. Default 50.
        filters: Number of filters of the first layer and of each 2-D
            convolution. Default 50, 50 and 50; the paper has 200 to 500.
        width: Number of words in a window; also the number of rows and columns
            in a window of a 2-D convolution. Default 3.
        padding: Padding of the first layer. With `"narrow"` (default), windows
            start at a word and end within `max_words` positions. With `"wide"`,
            each window that contains a word is used. 2-D convolutions are
            narrow.
        hidden: Widths of the hidden layers of the MLP. Default 200 (not
            stated in the paper).
        max_words: The fixed length of texts; longer texts are cut. Default 50.
        **kwargs: Arguments of `Matcher`.

    Raises:
        InputError: An argument is not supported, or `max_words` is too small
            for the number of layers.

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
            raise InputError(
                "filters is empty: give a number of filters per convolution"
            )
        check_each_at_least(1, filters=filters)
        self.filters = list(filters)
        self.width = width
        self.padding = padding
        self.hidden = list(hidden)
        self.max_words = max_words
        # The outputs for both sides are added, so one bias is enough.
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
        # A wide convolution is a narrow convolution of a padded text.
        zeros = 2 * (width - 1) if padding == "wide" else 0
        size = halved_time(max_words + zeros, width, len(self.filters))
        self.mlp = ScoringMLP(hidden, dtype=self.dtype_policy, name="mlp")
        self.flat_width = size * size * self.filters[-1]
        self.mlp.build((None, self.flat_width))
        self.built = True

    def represent(
        self, texts: WordSequences, side: str, training: bool = False
    ) -> Features:
        """Computes the query's or the document's term of the first layer.

        With W = [W_x, W_y], the first layer is relu(A_i + C_j), where A is a
        1-D convolution of the query by W_x, and C is a 1-D convolution of the
        document by W_y. Returns A or C after max pooling.
        """
        # As max(A_i + C_j) = max A_i + max C_j, and relu is monotone, pooling
        # before the sum gives the same values, with a quarter of the sums.
        values, lengths = fixed_time(
            texts.vectors, texts.lengths, self.max_words
        )
        values, lengths = self.first[SIDES.index(side)](values, lengths)
        return Features(*masked_max_pool(values, lengths))

    def match(
        self, query: Features, document: Features, training: bool = False
    ) -> tf.Tensor:
        """Adds A and C, and scores the sums by 2-D convolutions and an MLP."""
        rows, columns = query.lengths, document.lengths
        sums = query.values[:, :, tf.newaxis] + document.values[:, tf.newaxis]
        values = zero_padding_2d(tf.nn.relu(sums), rows, columns)
        for convolution in self.convolutions:
            size = tf.shape(values)[1] - self.width + 1
            rows, columns = tf.minimum(rows, size), tf.minimum(columns, size)
            values = zero_padding_2d(convolution(values), rows, columns)
            # All values are at least 0, so padding with 0 changes no maximum.
            values = tf.nn.max_pool2d(values, 2, 2, "SAME")
            rows, columns = (rows + 1) // 2, (columns + 1) // 2
        return self.mlp(tf.reshape(values, [-1, self.flat_width]))


def zero_padding_2d(
    cells: tf.Tensor, rows: tf.Tensor, columns: tf.Tensor
) -> tf.Tensor:
    """Sets the padding of cells `[pairs, m, n, channels]` to 0."""
    shape = tf.shape(cells)
    real_rows = tf.sequence_mask(rows, shape[1])[:, :, tf.newaxis, tf.newaxis]
    real_columns = tf.sequence_mask(columns, shape[2])[:, tf.newaxis, :]
    real = tf.logical_and(real_rows, real_columns[..., tf.newaxis])
    return tf.where(real, cells, tf.zeros([], cells.dtype))


@register
class CNTN(Matcher):
    """Compares two sentence vectors by a neural tensor layer.

        s = u' tanh(v_q' M^[1:r] v_a + V [v_q; v_a] + b)

    This is the convolutional neural tensor network of Qiu and Huang 2015.
    Wide convolutions with dynamic k-max pooling and a dense layer compute the
    vector of a text: v_q for a query, v_a for a document. Queries and documents
    have separate weights. The default sizes are from public implementations.
    The preset `cntn_wan`, a baseline of Wan et al. 2016, is smaller. See
    `Matcher` for the call arguments and the scores.

    Args:
        word_dimension: Width of the word vectors. Default 50.
        filters: Number of filters of each convolution. Default 50 and 50
            (not stated in the paper).
        width: Number of words in a window. Default 3.
        use_bias: Whether the convolutions have a bias. Default `True`.
        k_top: Number of values of each feature after the last pooling. Default
            10.
        k_min: Smallest number of values of each feature after each pooling
            before the last pooling. Default `None`: `k_top`.
        dimension: Width of the vector of a text, the output of a dense layer
            with tanh (not stated in the paper). Default 200. `None`: no dense
            layer; the vector has the values of the last pooling.
        slices: Number of slices of the tensor, r. Default 5.
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
        # This weight is u. As u starts with zeros, all scores start with 0.
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
        """Computes the terms of the tensor layer that need one text only.

        Returns v_q' M^[1:r] `[texts, r, size]` for queries, or v_a `[texts,
        size]` for documents. Also returns the side's term of V [v_q; v_a],
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
        """Scores pairs by the tensor layer, from the terms of both texts."""
        products = tf.einsum("pre,pe->pr", query[0], document[0])
        hidden = tf.tanh(products + query[1] + document[1] + self.bias)
        return tf.linalg.matvec(hidden, self.combination)
