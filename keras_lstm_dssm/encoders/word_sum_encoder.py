"""`WordSumEncoder`: the sum of fixed word vectors, fitted to a teacher's."""

from typing import Any

import tensorflow as tf

from keras_lstm_dssm.encoders.parts import sum_words
from keras_lstm_dssm.encoders.text_encoder import TextEncoder
from keras_lstm_dssm.registration import register
from keras_lstm_dssm.text.word_batch import WordBatch


@register
class WordSumEncoder(TextEncoder):
    """Sums a fixed vector of each word of a text.

        y = sum over the words w of a text of r(w)

    The vectors r, which contain the weight of the word, are fitted in closed
    form to those that a pretrained sentence encoder, the teacher, gives whole
    texts (`fit_words`): a text's vector costs a look-up and a sum, and needs
    neither the teacher nor a click. The order of the words does not matter. A
    word that no text of the teacher has, such as a misspelled one, has a
    vector by its trigrams, see `WordRows`.

    Nothing is trained by gradients. This encoder is not in the papers;
    docs/few_clicks.md has what it finds without clicks, and with few.

    Args:
        known_words: Number of words with a vector of their own. Default 1,
            before the fit.
        known_trigrams: Number of trigrams with a vector. Default 1.
        units: Width of the vectors, that of the teacher's. Default 1.
        split: Rule that separates words, see `LetterTrigrams`. Default
            `"alphanumeric"`.
        **kwargs: Arguments of `TextEncoder`.

    Example:
    >>> encoder = WordSumEncoder(known_words=9, units=384)
    >>> encoder.dimension
    384
    """

    fitted = True

    def __init__(
        self,
        known_words: int = 1,
        known_trigrams: int = 1,
        units: int = 1,
        split: str = "alphanumeric",
        **kwargs: Any,
    ) -> None:
        super().__init__(split=split, **kwargs)
        self.known_words = known_words
        self.known_trigrams = known_trigrams
        self.dimension = self.units = units
        self.word_rows = self._word_rows(known_words, known_trigrams, units)

    def compose(self, words: WordBatch, training: bool = False) -> tf.Tensor:
        """Sum the vectors of each text's words."""
        return sum_words(self.word_rows, words)
