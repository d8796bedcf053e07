"""Text operations in TensorFlow graphs: sentences, words, letter trigrams."""

from keras_lstm_dssm.text.sentences import split_sentences
from keras_lstm_dssm.text.vocabulary import Vocabulary, vocabulary_of
from keras_lstm_dssm.text.word_hashing import (
    LETTERS,
    WORD_SPLITS,
    WordBatch,
    normalize,
    normalize_texts,
)

__all__ = [
    "LETTERS", "Vocabulary", "WORD_SPLITS", "WordBatch", "normalize",
    "normalize_texts", "split_sentences", "vocabulary_of",
]  # fmt: skip
