"""Arguments that a layer refuses when it is made."""

import pytest

from keras_lstm_dssm import InputError, LetterTrigrams, PeepholeLSTMCell
from keras_lstm_dssm.layers import (
    BilinearInteraction,
    DynamicPooling,
    KMaxPooling,
    TensorInteraction,
    TrigramVectors,
    VocabularyVectors,
    WordRows,
)
from keras_lstm_dssm.layers.convolution import MaskedConvolution, ScoringMLP
from keras_lstm_dssm.layers.documents import (
    DocumentEncoder,
    SentenceEncoder,
    SentenceReader,
)

NO_WIDTH = "is 0: expected a whole number of 1 or more"
MAX_WORDS = "max_words is 0: expected a whole number of 1 or more, or None"
SPLIT = "split must be one of space, alphanumeric, stems, not 'x'"


@pytest.mark.parametrize(("kind", "arguments", "message"), [
    (BilinearInteraction, {"dimension": 0},
     "dimension is 0: expected a whole number of 1 or more"),
    (BilinearInteraction, {"rank": 0},
     "rank is 0: expected a whole number of 1 or more"),
    (TensorInteraction, {"slices": 0},
     "slices is 0: expected a whole number of 1 or more"),
    (MaskedConvolution, {"filters": 3, "padding": "same"},
     "padding must be one of .* 'same'"),
    (MaskedConvolution, {"filters": 3, "width": 0},
     "width is 0: expected a whole number of 1 or more"),
    (DynamicPooling, {"rows": 2, "repeat": "x"}, "repeat must be .* 'x'"),
    (DynamicPooling, {"rows": 2, "mode": "mean"}, "mode must be .* 'mean'"),
    (DynamicPooling, {"rows": 2, "columns": 0},
     "columns is 0: expected a whole number of 1 or more"),
    (KMaxPooling, {"k": 0}, "k is 0: expected a whole number of 1 or more"),
    (ScoringMLP, {"hidden": [0]},
     "hidden is 0: expected a whole number of 1 or more"),
    (SentenceEncoder, {"filters": 0}, NO_WIDTH),
    (SentenceEncoder, {"word_dimension": 0}, NO_WIDTH),
    (SentenceEncoder, {"windows": [0, 1]}, NO_WIDTH),
    (SentenceEncoder, {"windows": []}, "windows is empty: expected the wi"),
    (SentenceReader, {"sentence_dimension": 0, "units": 2}, NO_WIDTH),
    (SentenceReader, {"sentence_dimension": 3, "units": 0}, NO_WIDTH),
    (DocumentEncoder, {"state_dimension": 0, "dimension": 2}, NO_WIDTH),
    (DocumentEncoder, {"state_dimension": 3, "dimension": 0}, NO_WIDTH),
    (VocabularyVectors, {"vocabulary": ["a"], "dimension": 0},
     "dimension is 0: expected a whole number of 1 or more"),
    (VocabularyVectors, {"vocabulary": ["a"], "max_words": 0}, MAX_WORDS),
    (VocabularyVectors, {"vocabulary": ["a"], "split": "x"}, SPLIT),
    (TrigramVectors, {"dimension": 0},
     "dimension is 0: expected a whole number of 1 or more"),
    (TrigramVectors, {"max_words": 0}, MAX_WORDS),
    (TrigramVectors, {"split": "x"}, SPLIT),
    (LetterTrigrams, {"alphabet": "greek"}, "alphabet must be 'ascii', not"),
    (LetterTrigrams, {"oov_buckets": -1},
     "oov_buckets is -1: expected a whole number of 0 or more"),
    (LetterTrigrams, {"max_words": 0}, MAX_WORDS),
    (WordRows, {"words": 0},
     "words is 0: expected a whole number of 1 or more"),
    (WordRows, {"trigrams": 0},
     "trigrams is 0: expected a whole number of 1 or more"),
    (WordRows, {"units": "8"},
     "units is '8': expected a whole number of 1 or more"),
    (PeepholeLSTMCell, {"units": 3, "peephole": "half"},
     "peephole must be one of .* 'half'"),
])  # fmt: skip
def test_wrong_arguments_are_refused(kind, arguments, message):
    with pytest.raises(InputError, match=message):
        kind(**arguments)
