"""CNTN: convolutional sentence vectors, compared by a neural tensor layer."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.errors import check_at_least
from keras_lstm_dssm.layers.convolution import KMaxStack
from keras_lstm_dssm.layers.scoring_mlp import small_uniform
from keras_lstm_dssm.layers.word_vectors import WordSequences
from keras_lstm_dssm.matchers.matcher import SIDES, Matcher
from keras_lstm_dssm.registration import register


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
