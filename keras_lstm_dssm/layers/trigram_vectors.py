"""TrigramVectors: the vector of a word is a sum over its letter trigrams."""

from typing import Any

from keras_lstm_dssm.layers.letter_trigrams import LetterTrigrams
from keras_lstm_dssm.layers.trigram_embedding import TrigramEmbedding
from keras_lstm_dssm.layers.word_vectors import WordVectors
from keras_lstm_dssm.registration import register
from keras_lstm_dssm.text import WordBatch


@register
class TrigramVectors(WordVectors):
    """Adds up the vectors of each word's letter trigrams.

    Every word has a vector, also one that no training text contains. The
    vectors need no start from `skip_gram_vectors`: words with common
    trigrams, such as inflections, have similar vectors from the beginning.

    The table starts uniform in [-0.05, 0.05], see `TrigramEmbedding`. The sum
    over the trigrams of a word of four letters then has the variance of the
    vectors of `VocabularyVectors`.

    Args:
        dimension: Width of the vectors. Default 50.
        oov_buckets: Number of ids for trigrams with a letter outside the
            alphabet. Default 0; see `LetterTrigrams`.
        max_words: Number of words to read of each text. Default 50.
        split: Rule that separates words. Default `"alphanumeric"`.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        words: See `WordVectors`.
        training: See `WordVectors`.

    Returns:
        See `WordVectors`.

    Raises:
        InputError: An argument is not supported.

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
        self.trigrams = LetterTrigrams(
            oov_buckets=oov_buckets,
            max_words=max_words,
            split=split,
            name="trigrams",
        )
        self.embedding = TrigramEmbedding(
            self.trigrams.size,
            dimension,
            dtype=self.dtype_policy,
            name="embedding",
        )
        self.build((None,))

    def distinct(self, texts: Any) -> WordBatch:
        """Hash texts into a `WordBatch` of letter trigrams.

        Args:
            texts: Strings `(batch,)`: a tensor, an array or a list.
        """
        return self.trigrams.distinct(texts)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor arguments as a dict, for `from_config`."""
        return {
            **super().get_config(),
            "oov_buckets": self.trigrams.oov_buckets,
        }
