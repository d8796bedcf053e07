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
from keras_lstm_dssm.layers.convolution import MaskedConvolution
from keras_lstm_dssm.layers.documents import (
    DocumentEncoder,
    SentenceEncoder,
    SentenceReader,
)
from keras_lstm_dssm.layers.scoring_mlp import ScoringMLP

NO_WIDTH = "must be at least 1, not"
MAX_WORDS = "max_words must be at least 1 or None, not 0"
SPLIT = "split must be one of space, alphanumeric, stems, not 'x'"


@pytest.mark.parametrize(("kind", "arguments", "message"), [
    (BilinearInteraction, {"dimension": 0}, "dimension must be .* 1, not 0"),
    (BilinearInteraction, {"rank": 0}, "rank must be at least 1, not 0"),
    (TensorInteraction, {"slices": 0}, "slices must be at least 1, not 0"),
    (MaskedConvolution, {"filters": 3, "padding": "same"},
     "padding must be one of .* 'same'"),
    (MaskedConvolution, {"filters": 3, "width": 0}, "at least 1, not 3 and 0"),
    (DynamicPooling, {"rows": 2, "repeat": "x"}, "repeat must be .* 'x'"),
    (DynamicPooling, {"rows": 2, "mode": "mean"}, "mode must be .* 'mean'"),
    (DynamicPooling, {"rows": 2, "columns": 0}, "at least 1, not 2 and 0"),
    (KMaxPooling, {"k": 0}, "k must be at least 1, not 0"),
    (ScoringMLP, {"hidden": [0]}, r"hidden must be widths .*\[0\]"),
    (SentenceEncoder, {"filters": 0}, NO_WIDTH),
    (SentenceEncoder, {"word_dimension": 0}, NO_WIDTH),
    (SentenceEncoder, {"windows": [0, 1]}, NO_WIDTH),
    (SentenceEncoder, {"windows": []}, NO_WIDTH),
    (SentenceReader, {"sentence_dimension": 0, "units": 2}, NO_WIDTH),
    (SentenceReader, {"sentence_dimension": 3, "units": 0}, NO_WIDTH),
    (DocumentEncoder, {"state_dimension": 0, "dimension": 2}, NO_WIDTH),
    (DocumentEncoder, {"state_dimension": 3, "dimension": 0}, NO_WIDTH),
    (VocabularyVectors, {"vocabulary": ["a"], "dimension": 0},
     "dimension must be at least 1, not 0"),
    (VocabularyVectors, {"vocabulary": ["a"], "max_words": 0}, MAX_WORDS),
    (VocabularyVectors, {"vocabulary": ["a"], "split": "x"}, SPLIT),
    (TrigramVectors, {"dimension": 0}, "dimension must be at least 1, not 0"),
    (TrigramVectors, {"max_words": 0}, MAX_WORDS),
    (TrigramVectors, {"split": "x"}, SPLIT),
    (LetterTrigrams, {"alphabet": "greek"}, "alphabet must be 'ascii', not"),
    (LetterTrigrams, {"oov_buckets": -1}, "oov_buckets must be >= 0, not -1"),
    (LetterTrigrams, {"max_words": 0}, MAX_WORDS),
    (WordRows, {"words": 0}, "words and trigrams .* at least 1, not 0 and 1"),
    (WordRows, {"trigrams": 0}, "at least 1, not 1 and 0 and 1"),
    (WordRows, {"units": 0}, "at least 1, not 1 and 1 and 0"),
    (PeepholeLSTMCell, {"units": 3, "peephole": "half"},
     "peephole must be one of .* 'half'"),
])  # fmt: skip
def test_wrong_arguments_are_refused(kind, arguments, message):
    with pytest.raises(InputError, match=message):
        kind(**arguments)
