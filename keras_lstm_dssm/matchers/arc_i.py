"""ARCI: a convolutional network for each text, and an MLP over both."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.layers.convolution_stacks import (
    ConvolutionStack,
    KMaxStack,
    WindowPoolingStack,
)
from keras_lstm_dssm.layers.scoring_mlp import ScoringMLP
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
    that Wan et al. 2016 compared with, see `KMaxStack` and `ARC_I_OF_WAN`.

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
        """Compute S_X or S_Y, `[texts, features]`."""
        stack = self.query_stack if side == "query" else self.document_stack
        return stack.flat(texts.vectors, texts.lengths)

    def match(
        self, query: tf.Tensor, document: tf.Tensor, training: bool = False
    ) -> tf.Tensor:
        """Score pairs of features."""
        return self.mlp(tf.concat([query, document], axis=1))

    def get_config(self) -> dict[str, Any]:
        """Return the constructor arguments as a dict, for `from_config`."""
        return {
            **super().get_config(),
            "filters": self.filters,
            "width": self.width,
            "activation": self.activation,
            "use_bias": self.use_bias,
            "pooling": self.pooling,
            "hidden": self.hidden,
            "max_words": self.max_words,
        }
