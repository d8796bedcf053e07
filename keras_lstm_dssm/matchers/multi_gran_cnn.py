"""MultiGranCNN: similarities of words, phrases and whole texts."""

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
    Features,
    KMaxStack,
    ScoringMLP,
    small_uniform,
    zero_padding,
)
from keras_lstm_dssm.layers.interactions import PhraseSimilarity
from keras_lstm_dssm.layers.pooling import DynamicPooling
from keras_lstm_dssm.layers.word_vectors import WordSequences
from keras_lstm_dssm.matchers.matcher import SIDES, Matcher
from keras_lstm_dssm.registration import register


@register
class MultiGranCNN(Matcher):
    """Compares phrases of all sizes, and convolves over the similarities.

    The model follows Yin and Schuetze 2015. A text has three kinds of phrases:
    the words, the outputs of each convolution, and the whole text. The vector
    of the whole text is the output of the last pooling. Each query phrase is
    compared with each document phrase. `DynamicPooling` reduces the matrix of
    similarities to a fixed size. 2-D convolutions with tanh follow, each with a
    dynamic pooling. An MLP computes the score.

    Queries and documents have separate convolutions. The number of filters is
    the width of the word vectors, because the vectors of all phrases have the
    same width. The preset `multi_gran_cnn_wan`, a baseline of Wan et al. 2016,
    is smaller and has no 2-D convolutions. See `Matcher` for the call arguments
    and the scores.

    Args:
        word_dimension: Width of the word vectors and of all phrases. Default
            50.
        blocks: Number of convolutions of a text. Default 3.
        width: Number of positions in a window. Default 3.
        activation: Name of the activation of the convolutions. Default
            `"tanh"`.
        use_bias: Whether the similarity and the convolutions of texts have a
            bias. Default `True`.
        k_min: Smallest k of the poolings of texts, except the last pooling. The
            last pooling has k = 1. Default 4.
        similarity: Similarity of two phrases g1 and g2, `"indirect"`
            (default): f(g1' W g2 + b); `"direct"`: exp(-|g1 - g2|^2 / 4); or
            `"concat"`: f(w' [g1; g2] + b).
        similarity_activation: The function f of `similarity`: `"sigmoid"`
            (default), `"relu"`, `"tanh"` or `"linear"`.
        sizes: Number of rows, and of columns, after each dynamic pooling.
            `sizes` has one number more than `match_filters`. Default 15, 8, 4
            and 2 (not stated in the paper).
        match_filters: Numbers of filters of the 2-D convolutions, which have
            3 x 3 cells and zero padding. Default 50, 50 and 50 (not stated in
            the paper).
        hidden: Widths of the hidden layers of the MLP. Default 200 (not
            stated in the paper).
        **kwargs: Arguments of `Matcher`.

    Raises:
        InputError: An argument is not supported.

    Example:
    >>> MultiGranCNN(word_dimension=50)(query, document).shape
    TensorShape([3])
    """

    def __init__(
        self,
        word_dimension: int = 50,
        blocks: int = 3,
        width: int = 3,
        activation: str = "tanh",
        use_bias: bool = True,
        k_min: int = 4,
        similarity: str = "indirect",
        similarity_activation: str = "sigmoid",
        sizes: Sequence[int] = (15, 8, 4, 2),
        match_filters: Sequence[int] = (50, 50, 50),
        hidden: Sequence[int] = (200,),
        **kwargs: Any,
    ) -> None:
        super().__init__(word_dimension, **kwargs)
        check_at_least(1, blocks=blocks)
        check_each_at_least(1, sizes=sizes, match_filters=match_filters)
        if len(sizes) != len(match_filters) + 1:
            raise InputError(
                "sizes must have one number more than match_filters, found "
                f"{len(sizes)} and {len(match_filters)}"
            )
        self.blocks = blocks
        self.width = width
        self.activation = activation
        self.use_bias = use_bias
        self.k_min = k_min
        self.similarity = similarity
        self.similarity_activation = similarity_activation
        self.sizes = list(sizes)
        self.match_filters = list(match_filters)
        self.hidden = list(hidden)
        self.stacks = [self._stack(f"{side}_stack") for side in SIDES]
        self.phrase_similarity = PhraseSimilarity(
            word_dimension,
            similarity,
            similarity_activation,
            use_bias,
            dtype=self.dtype_policy,
            name="phrase_similarity",
        )
        self.poolings = [
            DynamicPooling(size, dtype=self.dtype_policy, name=f"pooling_{n}")
            for n, size in enumerate(self.sizes)
        ]
        self.convolutions = []
        channels = 1
        for number, count in enumerate(self.match_filters, 1):
            convolution = keras.layers.Conv2D(
                count,
                3,
                padding="same",
                data_format="channels_last",
                activation="tanh",
                kernel_initializer=small_uniform(),
                dtype=self.dtype_policy,
                name=f"convolution_{number}",
            )
            convolution.build((None, None, None, channels))
            self.convolutions.append(convolution)
            channels = count
        self.flat_width = self.sizes[-1] ** 2 * channels
        self.mlp = ScoringMLP(hidden, dtype=self.dtype_policy, name="mlp")
        self.mlp.build((None, self.flat_width))
        self.built = True

    def _stack(self, name: str) -> KMaxStack:
        stack = KMaxStack(
            [self.word_dimension] * self.blocks,
            self.width,
            self.activation,
            self.use_bias,
            k_top=1,
            k_min=self.k_min,
            dtype=self.dtype_policy,
            name=name,
        )
        stack.build((None, None, self.word_dimension))
        return stack

    @property
    def multipliers(self) -> dict[str, float]:
        """Factor of the learning rate: 0.1 for W and b of `"indirect"`."""
        indirect = self.similarity == "indirect"
        return {"phrase_similarity": 0.1} if indirect else {}

    def represent(
        self, texts: WordSequences, side: str, training: bool = False
    ) -> Features:
        """Computes the vectors of all phrases of each text, as one sequence."""
        stack = self.stacks[SIDES.index(side)]
        words = Features(texts.vectors, texts.lengths)
        phrases = joined([words, *stack(texts.vectors, texts.lengths)])
        if side == "query":
            values = self.phrase_similarity.project(phrases.values)
            phrases = Features(values, phrases.lengths)
        return phrases

    def match(
        self, query: Features, document: Features, training: bool = False
    ) -> tf.Tensor:
        """Compares all phrases of two texts, and scores the similarities."""
        cells = self.phrase_similarity(query.values, document.values)
        values = self.poolings[0](
            cells[..., tf.newaxis], query.lengths, document.lengths
        )
        # f and exp never decrease, so the max pooling may come before `apply`.
        # `apply` then has fewer cells to compute.
        values = self.phrase_similarity.apply(values)
        for convolution, pooling, size in zip(
            self.convolutions, self.poolings[1:], self.sizes[:-1], strict=True
        ):
            full = tf.fill(tf.shape(query.lengths), size)
            values = pooling(convolution(values), full, full)
        return self.mlp(tf.reshape(values, [-1, self.flat_width]))


def joined(parts: Sequence[Features]) -> Features:
    """Concatenates the sequences of each text, and moves padding to the end."""
    lengths = tf.add_n([part.lengths for part in parts])
    values = tf.concat([part.values for part in parts], axis=1)
    masks = [
        tf.sequence_mask(part.lengths, tf.shape(part.values)[1])
        for part in parts
    ]
    padding = tf.cast(~tf.concat(masks, axis=1), tf.int32)
    order = tf.argsort(padding, axis=1, stable=True)
    order = order[:, : tf.reduce_max(lengths)]
    values = tf.gather(values, order, batch_dims=1)
    return Features(zero_padding(values, lengths), lengths)
