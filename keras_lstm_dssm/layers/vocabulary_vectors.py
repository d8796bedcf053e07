"""VocabularyVectors: one vector for each word of a vocabulary."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.layers.trigram_embedding import TrigramEmbedding
from keras_lstm_dssm.layers.word_vectors import WordVectors
from keras_lstm_dssm.registration import register
from keras_lstm_dssm.text import Vocabulary, WordBatch, as_strings


@register
class VocabularyVectors(WordVectors):
    """Looks up one vector for each word of a vocabulary.

    Words outside the vocabulary have the id 0 and share one vector, which is
    trained like the others; an empty text is one such word.

    Args:
        vocabulary: The words, all different and normalised; see
            `vocabulary_of`.
        dimension: Width of the vectors. Default 50.
        max_words: Number of words to read of each text. Default 50.
        initializer: Initializer of the vectors. Default `None`: uniform in
            [-0.1, 0.1], as in Wan et al. 2016. See also `set_vectors`.
        split: Rule that separates words. Default `"alphanumeric"`.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        words: See `WordVectors`.
        training: See `WordVectors`.

    Returns:
        See `WordVectors`.

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
            len(self.lookup) + 1,
            dimension,
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
        """The words; the one with id i is `vocabulary[i - 1]`."""
        return self.lookup.words

    def distinct(self, texts: Any) -> WordBatch:
        """Hash texts into a `WordBatch` of vocabulary ids.

        Args:
            texts: Strings `(batch,)`: a tensor, an array or a list.
        """
        return self.lookup.distinct(as_strings(texts), self.max_words)

    def set_vectors(self, vectors: Any) -> None:
        """Replace the vectors of all words but the unknown one.

        Args:
            vectors: Array `[len(vocabulary), dimension]`, for example from
                `skip_gram_vectors`.

        Raises:
            InputError: The shape is another one, or a value is not finite.
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
        table[1:] = vectors  # row 0 is that of unknown words
        self.embedding.set_weights([table])

    def _word_ids(self, words: WordBatch) -> tf.Tensor:
        return tf.gather(words.trigrams, words.words)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments.

        The vocabulary is one string, with spaces between the words: Keras
        reads a list from a configuration element by element.
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
        """Create the layer from the result of `get_config`."""
        words = config["vocabulary"].split(" ")
        return cls(**{**config, "vocabulary": words})
