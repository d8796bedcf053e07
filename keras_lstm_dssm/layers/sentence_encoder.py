"""SentenceEncoder: the words of a sentence -> one vector, by convolution."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.private_api import accept_any_inputs
from keras_lstm_dssm.registration import register
from keras_lstm_dssm.text import WordBatch


@register
class SentenceEncoder(keras.layers.Layer):
    """Represents sentences by convolutions and a maximum over time.

        s_f = relu(max_t (W_f [w_t; ..; w_{t+k-1}]) + b_f)

    The g of eq. (1) in Bi and Ma 2017, as in Kim 2014: some filters f for
    each window of k words. A window lies within its sentence; a sentence of
    fewer than k words has one window, filled up with zero vectors.

    A filter's value at a window is a sum of k products, each of one word's
    vector. The products are computed once for each distinct word of the
    batch, and each window gathers and adds its own; time and memory are
    proportional to the number of words, without padding. Of windows with the
    same largest value, the first one receives the gradient.

    Args:
        word_dimension: Width of the word vectors. Default 100.
        filters: Number of filters of each window. Default 50.
        windows: Numbers of words in a window. Default 3, 4 and 5.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        vectors: Float `(n, word_dimension)`, the vector of each distinct
            word of `words`.
        words: `WordBatch` of sentences, with `n` distinct words.
        training: Whether a gradient will be computed. With `False`, the
            default, a gradient is slower to compute, and is divided among
            windows of the same value.

    Returns:
        Float `(u, dimension)`, a vector for each of the `u` distinct
        sentences, in their order.

    Attributes:
        dimension: Width of the result, `filters` for each window.

    Raises:
        InputError: A number is less than 1, or there are no windows.

    Example:
    >>> words = VocabularyVectors(["hat", "red"], dimension=100)
    >>> batch = words.distinct(["Red hat!", "old hat", "Red hat!"])
    >>> SentenceEncoder()(words.embedding(batch), batch).shape
    TensorShape([2, 150])
    """

    def __init__(
        self,
        word_dimension: int = 100,
        filters: int = 50,
        windows: Sequence[int] = (3, 4, 5),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if min(word_dimension, filters, *windows, 1) < 1 or not windows:
            raise InputError(
                "word_dimension, filters and windows must be at least 1, not "
                f"{word_dimension}, {filters} and {list(windows)}"
            )
        self.word_dimension = word_dimension
        self.filters = filters
        self.windows = list(windows)
        self.dimension = filters * len(self.windows)
        self.kernels = [
            self.add_weight(
                shape=(width, word_dimension, filters),
                initializer="glorot_uniform",
                name=f"kernel_{width}",
            )
            for width in self.windows
        ]
        self.bias = self.add_weight(
            shape=(self.dimension,), initializer="zeros", name="bias"
        )
        accept_any_inputs(self)
        self.built = True

    def call(
        self, vectors: tf.Tensor, words: WordBatch, training: bool = False
    ) -> tf.Tensor:
        """Compute s of the distinct sentences."""
        flat, _ = words.flat()
        largest = []
        for width, kernel in zip(self.windows, self.kernels, strict=True):
            # Row j * width + o is the product of word j at offset o; the
            # last row, of zeros, is that of all words past the end.
            by_offset = tf.transpose(tf.convert_to_tensor(kernel), [1, 0, 2])
            products = tf.matmul(
                vectors,
                tf.reshape(by_offset, [self.word_dimension, -1]),
            )
            products = tf.reshape(products, [-1, self.filters])
            products = tf.pad(products, [[0, 1], [0, 0]])
            offsets = tf.range(width)
            position, sentence, inside = windows_of(words.lengths, width)
            rows = tf.gather(flat, position) * width + offsets
            rows = tf.where(inside, rows, tf.shape(products)[0] - 1)
            largest.append(_largest_sums(products, rows, sentence, training))
        return tf.nn.relu(tf.concat(largest, axis=1) + self.bias)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor arguments as a dict, for `from_config`."""
        return {
            **super().get_config(),
            "word_dimension": self.word_dimension,
            "filters": self.filters,
            "windows": self.windows,
        }


def windows_of(
    lengths: tf.Tensor, width: int
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """List the windows of sentences whose words follow each other.

    Args:
        lengths: int32 `(sentences,)`, at least 1.
        width: Number of words in a window.

    Returns:
        `position`, int32 `(windows, width)`, the index of each word among
        those of all sentences, 0 past the end of the sentence; `sentence`,
        int32 `(windows,)`, ascending; and `inside`, bool `(windows, width)`,
        `False` past the end.

    Example:
    >>> windows_of(tf.constant([3, 1]), 2)[0].numpy().tolist()
    [[0, 1], [1, 2], [3, 0]]
    """
    counts = tf.maximum(lengths - width + 1, 1)
    sentence = tf.repeat(tf.range(tf.size(lengths)), counts)
    # A window's first word: the words and windows of earlier sentences.
    shift = tf.cumsum(lengths - counts, exclusive=True)
    first = tf.range(tf.size(sentence)) + tf.gather(shift, sentence)
    position = first[:, tf.newaxis] + tf.range(width)
    end = tf.gather(tf.cumsum(lengths), sentence)
    inside = position < end[:, tf.newaxis]
    return tf.where(inside, position, 0), sentence, inside


def _largest_sums(
    values: tf.Tensor, rows: tf.Tensor, segment: tf.Tensor, training: bool
) -> tf.Tensor:
    """Compute the largest sum of rows in each segment, column by column.

        y[s, f] = max over w with segment[w] = s of sum_o values[rows[w, o], f]

    Args:
        values: Float `(n, columns)`.
        rows: int32 `(sums, terms)`, rows of `values`.
        segment: int32 `(sums,)`, ascending, every segment at least once.
        training: Whether a gradient will be computed.

    Returns:
        Float `(segments, columns)`.
    """

    def sums_of(values: tf.Tensor) -> tf.Tensor:
        terms = tf.unstack(rows, axis=1)
        return tf.add_n([tf.gather(values, term) for term in terms])

    if not training:
        return tf.math.segment_max(sums_of(values), segment)

    @tf.custom_gradient
    def forward(values: tf.Tensor) -> Any:
        sums = sums_of(values)
        largest = tf.math.segment_max(sums, segment)

        def gradient(error: tf.Tensor) -> tf.Tensor:
            # One sum of each segment and column has a gradient, so that few
            # of the gathered numbers need to be added up.
            number, columns = tf.unstack(tf.shape(sums))
            is_largest = tf.equal(sums, tf.gather(largest, segment))
            order = tf.range(number)[:, tf.newaxis]
            # No number equals a NaN: `number - 1` is any valid index.
            chosen = tf.math.segment_min(
                tf.where(is_largest, order, number - 1), segment
            )
            index = tf.gather(rows, chosen) * columns
            index += tf.range(columns)[:, tf.newaxis]
            errors = tf.broadcast_to(error[:, :, tf.newaxis], tf.shape(index))
            total = tf.math.unsorted_segment_sum(errors, index, tf.size(values))
            return tf.reshape(total, tf.shape(values))

        return largest, gradient

    return forward(values)
