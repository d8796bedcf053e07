"""Text operations in the graph: strings, words and ids of letter trigrams."""

from keras_lstm_dssm.text.caches import HashedTextCache, NormalizedTextCache
from keras_lstm_dssm.text.sentences import graph_sentences, split_sentences
from keras_lstm_dssm.text.strings import (
    arrays_in_batches,
    as_bytes,
    as_strings,
    encode_in_batches,
)
from keras_lstm_dssm.text.vocabulary import (
    Vocabulary,
    split_in_batches,
    vocabulary_of,
)
from keras_lstm_dssm.text.word_batch import (
    WordBatch,
    distinct_words,
    is_one_short_text,
    words_of_one_text,
)
from keras_lstm_dssm.text.word_hashing import (
    LETTERS,
    TRIGRAMS,
    WORD_SPLITS,
    check_split,
    cut_endings,
    normalize,
    normalize_texts,
    split_words,
    trigram_ids,
)

__all__ = [
    "LETTERS",
    "NormalizedTextCache",
    "TRIGRAMS",
    "Vocabulary",
    "WORD_SPLITS",
    "WordBatch",
    "HashedTextCache",
    "arrays_in_batches",
    "as_bytes",
    "as_strings",
    "check_split",
    "cut_endings",
    "distinct_words",
    "encode_in_batches",
    "graph_sentences",
    "is_one_short_text",
    "normalize",
    "normalize_texts",
    "split_in_batches",
    "split_sentences",
    "split_words",
    "trigram_ids",
    "vocabulary_of",
    "words_of_one_text",
]
