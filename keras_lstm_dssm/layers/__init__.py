"""Keras layers: word vectors, recurrence, interactions and pooling."""

from keras_lstm_dssm.layers.fixed_words import WordRows, WordSketch
from keras_lstm_dssm.layers.interactions import (
    BilinearInteraction,
    CosineInteraction,
    DotInteraction,
    TensorInteraction,
)
from keras_lstm_dssm.layers.letter_trigrams import (
    LetterTrigrams,
    TrigramEmbedding,
)
from keras_lstm_dssm.layers.pooling import DynamicPooling, KMaxPooling
from keras_lstm_dssm.layers.recurrent import PeepholeLSTM, Recurrent
from keras_lstm_dssm.layers.recurrent_cells import PeepholeLSTMCell, RNNCell
from keras_lstm_dssm.layers.word_vectors import (
    TrigramVectors,
    VocabularyVectors,
    WordSequences,
    WordVectors,
)
from keras_lstm_dssm.ops import unit

__all__ = [
    "BilinearInteraction", "CosineInteraction", "DotInteraction",
    "DynamicPooling", "KMaxPooling", "LetterTrigrams", "PeepholeLSTM",
    "PeepholeLSTMCell", "RNNCell", "Recurrent", "TensorInteraction",
    "TrigramEmbedding", "TrigramVectors", "VocabularyVectors", "WordSequences",
    "WordRows", "WordSketch", "WordVectors", "unit",
]  # fmt: skip
