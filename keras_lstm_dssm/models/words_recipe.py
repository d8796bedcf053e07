"""WordsRecipe: what recipes of models that read word vectors share."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_lstm_dssm.layers import TrigramVectors, VocabularyVectors
from keras_lstm_dssm.models.base_recipe import BaseRecipe


class WordsRecipe(BaseRecipe):
    """Base of `ScorerRecipe` and `KeyVecRecipe`: makes the word vectors.

    Attributes:
        words: `"vocabulary"`, one vector for each word of the training texts;
            `"stems"`, one for all forms of a word, see `cut_endings`; or
            `"trigrams"`, the sum of the vectors of a word's letter trigrams.
        word_dimension: Width of the word vectors.
        max_words: Number of words to read of each text.
    """

    words: str
    word_dimension: int
    max_words: int

    @property
    def split(self) -> str:
        """The rule that separates words, see `normalize_texts`."""
        return "stems" if self.words == "stems" else "alphanumeric"

    def _new_words(
        self, vocabulary: Sequence[str], vectors: np.ndarray | None
    ) -> VocabularyVectors | TrigramVectors:
        """Makes the layer that turns texts into word vectors.

        Args:
            vocabulary: The words or stems; not used for trigrams.
            vectors: Their vectors, `[words, word_dimension]`; `None` for a
                random start.

        Raises:
            InputError: The vocabulary is missing or wrong.
        """
        options: dict[str, Any] = {
            "dimension": self.word_dimension,
            "max_words": self.max_words,
            "name": "words",
        }
        if self.words == "trigrams":
            return TrigramVectors(**options)
        words = VocabularyVectors(vocabulary, split=self.split, **options)
        if vectors is not None:
            words.set_vectors(vectors)
        return words
