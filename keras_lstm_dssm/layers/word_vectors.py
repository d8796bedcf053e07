"""WordVectors: texts -> a sequence of word vectors for each text."""

from typing import Any, NamedTuple

import keras
import tensorflow as tf

from keras_lstm_dssm.text import WordBatch


class WordSequences(NamedTuple):
    """Holds the word vectors of a batch of texts.

    Attributes:
        vectors: Float `[texts, time, dimension]`, zero past the end of a
            text.
        lengths: int32 `[texts]`, the number of words of each text, at least
            1; descending.
        words: int32 `[texts, time]`, the vocabulary id of each word; 0 past
            the end of a text.
    """

    vectors: tf.Tensor
    lengths: tf.Tensor
    words: tf.Tensor

    @property
    def mask(self) -> tf.Tensor:
        """Whether there is a word, bool `[texts, time]`."""
        return tf.sequence_mask(self.lengths, tf.shape(self.words)[1])


class WordVectors(keras.layers.Layer):
    """Base of the layers that turn texts into word vectors.

    Attributes:
        dimension: Width of the vectors.
    """

    dimension: int

    def distinct(self, texts: Any) -> WordBatch:
        """Hash texts into a `WordBatch`, each distinct word once.

        Args:
            texts: Strings `(batch,)`.
        """
        raise NotImplementedError(f"{type(self).__name__}.distinct")

    def call(self, words: WordBatch, training: bool = False) -> WordSequences:
        """Look up the vectors of the distinct texts of a batch."""
        raise NotImplementedError(f"{type(self).__name__}.call")
