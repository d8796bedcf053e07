"""Keras layers: word hashing, trigram embedding, recurrence, cosine."""

from keras_lstm_dssm.layers.convolution import (
    KMaxStack,
    MaskedConvolution,
    WindowPoolingStack,
)
from keras_lstm_dssm.layers.cosine import cosine_matrix, cosine_pairs, unit
from keras_lstm_dssm.layers.documents import (
    DocumentEncoder,
    SentenceEncoder,
    SentenceReader,
)
from keras_lstm_dssm.layers.interactions import (
    BilinearInteraction,
    CosineInteraction,
    DotInteraction,
    PhraseSimilarity,
    TensorInteraction,
)
from keras_lstm_dssm.layers.letter_trigrams import (
    LetterTrigrams,
    TrigramEmbedding,
    gather_sum,
)
from keras_lstm_dssm.layers.packed_sequence import PackedSequence, pack
from keras_lstm_dssm.layers.peephole_lstm import PeepholeLSTM, PeepholeLSTMCell
from keras_lstm_dssm.layers.pooling import (
    DynamicPooling,
    KMaxPooling,
    OrderedKMax,
    StrongestCells,
)
from keras_lstm_dssm.layers.recurrent import Recurrent
from keras_lstm_dssm.layers.recurrent_cell import RNNCell
from keras_lstm_dssm.layers.scoring_mlp import ScoringMLP
from keras_lstm_dssm.layers.word_sketch import WordSketch
from keras_lstm_dssm.layers.word_vectors import (
    TrigramVectors,
    VocabularyVectors,
    WordSequences,
    WordVectors,
)

__all__ = [
    "BilinearInteraction",
    "CosineInteraction",
    "DocumentEncoder",
    "DotInteraction",
    "DynamicPooling",
    "KMaxPooling",
    "KMaxStack",
    "LetterTrigrams",
    "MaskedConvolution",
    "OrderedKMax",
    "PackedSequence",
    "PeepholeLSTM",
    "PeepholeLSTMCell",
    "PhraseSimilarity",
    "RNNCell",
    "Recurrent",
    "ScoringMLP",
    "SentenceEncoder",
    "SentenceReader",
    "StrongestCells",
    "TensorInteraction",
    "TrigramEmbedding",
    "TrigramVectors",
    "VocabularyVectors",
    "WindowPoolingStack",
    "WordSequences",
    "WordSketch",
    "WordVectors",
    "cosine_matrix",
    "cosine_pairs",
    "gather_sum",
    "pack",
    "unit",
]
