"""Layers that turn texts into sequences of word vectors."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.errors import InputError, check_at_least, check_precision
from keras_lstm_dssm.layers.letter_trigrams import (
    LetterTrigrams,
    TrigramEmbedding,
    gather_sum,
)
from keras_lstm_dssm.private_api import accept_any_inputs
from keras_lstm_dssm.registration import Configured, register
from keras_lstm_dssm.text.many_texts import HashedTextCache
from keras_lstm_dssm.text.vocabulary import Vocabulary, VocabularyCache
from keras_lstm_dssm.text.word_hashing import WordBatch, as_strings, check_split


class WordSequences(NamedTuple):
    """Holds the word vectors of a batch of texts.

    Attributes:
        vectors: Float `[texts, time, dimension]`, zero past the end of a
            text.
        lengths: int32 `[texts]`, the number of words of each text, at least
            1; descending.
        words: int32 `[texts, time]`, ids of the words, 0 past the end of a
            text. `VocabularyVectors` returns ids of the vocabulary.
            `TrigramVectors` returns indices of the batch's distinct words.

    Example:
    >>> from keras_lstm_dssm.layers import TrigramVectors
    >>> words = TrigramVectors(dimension=4)
    >>> texts = words(words.distinct(["hex bolt", "bolt"]))
    >>> texts.vectors.shape, texts.mask.numpy().tolist()
    (TensorShape([2, 2, 4]), [[True, True], [True, False]])
    """

    vectors: tf.Tensor
    lengths: tf.Tensor
    words: tf.Tensor

    @property
    def mask(self) -> tf.Tensor:
        """Whether a position has a word, bool `[texts, time]`."""
        return tf.sequence_mask(self.lengths, tf.shape(self.words)[1])


class WordVectors(Configured, keras.layers.Layer):
    """Base of the layers that turn texts into word vectors.

    A subclass implements `distinct` and `cache`. The constructor of a subclass
    creates `embedding`.

    Args:
        dimension: Width of the vectors. Default 50.
        max_words: Number of words to read of each text, from its start.
            Default 50; `None` for all.
        split: Rule that separates words, default `"alphanumeric"`; see
            `normalize_texts`.
        **kwargs: Arguments of `keras.layers.Layer`. `dtype` is `"float32"`
            or `"float64"`. `trainable=False` also freezes `embedding`.

    Call arguments:
        words: `WordBatch`, the result of `distinct`.
        training: `True` makes the gradient faster to compute. With `False`,
            the default, the gradient is the same.

    Returns:
        `WordSequences` of the distinct texts, in the order of the
        `WordBatch`.

    Attributes:
        embedding: The layer that computes the vector of each distinct word.

    Raises:
        InputError: An argument is not supported.

    Example:
    >>> from keras_lstm_dssm.layers import TrigramVectors, VocabularyVectors
    >>> for words in TrigramVectors(4), VocabularyVectors(["bolt"], 4):
    ...     print(words(words.distinct(["hex bolt"])).vectors.shape)
    (1, 2, 4)
    (1, 2, 4)
    """

    embedding: TrigramEmbedding

    def __init__(
        self,
        dimension: int = 50,
        max_words: int | None = 50,
        split: str = "alphanumeric",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_precision(self)
        check_at_least(1, dimension=dimension)
        check_split(max_words, split)
        self.dimension = dimension
        self.max_words = max_words
        self.split = split
        accept_any_inputs(self)  # Keras must not convert `words`
        self.supports_jit = False  # XLA has no string ops

    def build(self, input_shape: Any) -> None:
        """Freezes `embedding` if the layer is not trainable."""
        if not self.trainable:
            self.embedding.trainable = False

    @property
    def resources(self) -> list[tf.Module]:
        """Lookup tables that an exported `tf.Module` needs as attributes."""
        return []

    def distinct(self, texts: Any) -> WordBatch:
        """Hashes texts into a `WordBatch`, each distinct word once.

        Args:
            texts: Strings `(batch,)`: a tensor, an array or a list.
        """
        raise NotImplementedError(f"{type(self).__name__}.distinct")

    def cache(self) -> HashedTextCache:
        """Creates an empty cache that hashes as `distinct` does, but faster."""
        raise NotImplementedError(f"{type(self).__name__}.cache")

    def call(self, words: WordBatch, training: bool = False) -> WordSequences:
        """Looks up the vectors of the distinct texts of a batch."""
        rows = self.embedding(words, training=training)
        shape = tf.shape(words.words)
        # `steps` are the positions of words. For the other positions, which
        # are padding, `gather_sum` returns 0.
        is_word = tf.sequence_mask(words.lengths, shape[1])
        steps = tf.where(tf.reshape(is_word, [-1]))[:, 0]
        word, _ = words.flat()
        vectors = gather_sum(
            rows,
            word,
            tf.cast(steps, tf.int32),
            shape[0] * shape[1],
            training=training,
        )
        return WordSequences(
            tf.reshape(vectors, [shape[0], shape[1], self.dimension]),
            words.lengths,
            tf.where(is_word, self._word_ids(words), 0),
        )

    def _word_ids(self, words: WordBatch) -> tf.Tensor:
        return words.words

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor arguments as a dict, for `from_config`."""
        # If `PairScorer` froze only `embedding`, a copy must be frozen, too.
        trainable = self.trainable and self.embedding.trainable
        return {**super().get_config(), "trainable": trainable}


@register
class TrigramVectors(WordVectors):
    """Adds up the vectors of each word's letter trigrams.

    Every word has a vector, even if no training text contains it. Words with
    trigrams in common, such as inflections, have similar vectors even before
    training.

    The initial values of the table are uniform in [-0.05, 0.05). A word of four
    trigrams starts with the sum of four rows. The sum has the same variance as
    the initial values of `VocabularyVectors`, uniform in [-0.1, 0.1]. See
    `WordVectors` for the other arguments, the results and the errors.

    Args:
        oov_buckets: Number of ids for trigrams with a letter outside the
            alphabet. Default 0; see `LetterTrigrams`.

    Example:
    >>> layer = TrigramVectors(dimension=4)
    >>> layer(layer.distinct(["Red hat!", ""])).vectors.shape.as_list()
    [2, 2, 4]
    """

    def __init__(
        self,
        dimension: int = 50,
        oov_buckets: int = 0,
        max_words: int | None = 50,
        split: str = "alphanumeric",
        **kwargs: Any,
    ) -> None:
        super().__init__(dimension, max_words, split, **kwargs)
        self.oov_buckets = oov_buckets
        self.trigrams = LetterTrigrams(
            oov_buckets=oov_buckets,
            max_words=max_words,
            split=split,
            name="trigrams",
        )
        self.embedding = TrigramEmbedding(
            dimension,
            self.trigrams.size,
            dtype=self.dtype_policy,
            name="embedding",
        )
        self.build((None,))

    def distinct(self, texts: Any) -> WordBatch:
        """Hashes texts into a `WordBatch` of letter trigrams."""
        return self.trigrams.distinct(texts)

    def cache(self) -> HashedTextCache:
        """Creates an empty cache that hashes as `distinct` does, but faster."""
        return self.trigrams.cache()


@register
class VocabularyVectors(WordVectors):
    """Looks up one vector for each word of a vocabulary.

    Words outside the vocabulary have the id 0 and share a trained vector. An
    empty text is one unknown word. See `WordVectors` for the other arguments
    and the results.

    Args:
        vocabulary: Distinct normalised words; see `vocabulary_of`.
        initializer: Initializer of the vectors. Default `None`: uniform in
            [-0.1, 0.1], as in Wan et al. 2016. See also `set_vectors`.

    Raises:
        InputError: An argument is not supported; see `Vocabulary`.

    Example:
    >>> layer = VocabularyVectors(["hat", "red"], dimension=4)
    >>> sequences = layer(layer.distinct(["Red hat!", "old hat", ""]))
    >>> sequences.words.numpy().tolist(), sequences.vectors.shape.as_list()
    ([[2, 1], [0, 1], [0, 0]], [3, 2, 4])
    """

    def __init__(
        self,
        vocabulary: Sequence[str],
        dimension: int = 50,
        max_words: int | None = 50,
        initializer: Any = None,
        split: str = "alphanumeric",
        **kwargs: Any,
    ) -> None:
        super().__init__(dimension, max_words, split, **kwargs)
        self.lookup = Vocabulary(vocabulary, split)
        self.embedding = TrigramEmbedding(
            dimension,
            len(self.lookup) + 1,
            initializer or keras.initializers.RandomUniform(-0.1, 0.1),
            dtype=self.dtype_policy,
            name="embedding",
        )
        self.build((None,))

    @property
    def resources(self) -> list[tf.Module]:
        """The lookup table of the vocabulary, see `WordVectors`."""
        return [self.lookup]

    @property
    def vocabulary(self) -> list[str]:
        """The words; the word with id i is `vocabulary[i - 1]`."""
        return self.lookup.words

    def distinct(self, texts: Any) -> WordBatch:
        """Hashes texts into a `WordBatch` of vocabulary ids."""
        return self.lookup.distinct(as_strings(texts), self.max_words)

    def cache(self) -> HashedTextCache:
        """Creates an empty cache that hashes as `distinct` does, but faster."""
        return VocabularyCache(self.lookup, self.max_words)

    def set_vectors(self, vectors: Any) -> None:
        """Replaces the vectors of all words of the vocabulary.

        Args:
            vectors: Array `[len(vocabulary), dimension]`, for example from
                `skip_gram_vectors`.

        Raises:
            InputError: The shape is wrong, or a value is not finite.
        """
        vectors = np.asarray(vectors)
        expected = (len(self.lookup), self.dimension)
        if vectors.shape != expected:
            raise InputError(
                f"found vectors of shape {vectors.shape}, expected {expected}:"
                " one for each word of the vocabulary"
            )
        if not np.isfinite(vectors).all():
            row = int(np.argmin(np.isfinite(vectors).all(axis=1)))
            raise InputError(
                f"the vector of word {self.vocabulary[row]!r:.60}, row {row},"
                " has a value that is not finite"
            )
        (table,) = self.embedding.get_weights()
        table[1:] = vectors  # row 0 is the vector of unknown words
        self.embedding.set_weights([table])

    def _word_ids(self, words: WordBatch) -> tf.Tensor:
        return tf.gather(words.trigrams, words.words)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments.

        The vocabulary is a string with spaces between the words, because Keras
        deserializes a list element by element.
        """
        return {
            **super().get_config(),
            "vocabulary": self.lookup.joined,
            "initializer": keras.initializers.serialize(
                self.embedding.initializer
            ),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "VocabularyVectors":
        """Creates the layer from the result of `get_config`."""
        words = config["vocabulary"].split(" ")
        return cls(**{**config, "vocabulary": words})
