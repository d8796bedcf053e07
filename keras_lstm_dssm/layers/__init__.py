"""Keras layers: word hashing, trigram embedding, recurrence, cosine."""

from keras_lstm_dssm.layers.cosine import unit
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
from keras_lstm_dssm.layers.peephole_lstm import PeepholeLSTM, PeepholeLSTMCell
from keras_lstm_dssm.layers.pooling import DynamicPooling, KMaxPooling
from keras_lstm_dssm.layers.recurrent import Recurrent
from keras_lstm_dssm.layers.recurrent_cell import RNNCell
from keras_lstm_dssm.layers.word_rows import WordRows
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
    "DotInteraction",
    "DynamicPooling",
    "KMaxPooling",
    "LetterTrigrams",
    "PeepholeLSTM",
    "PeepholeLSTMCell",
    "RNNCell",
    "Recurrent",
    "TensorInteraction",
    "TrigramEmbedding",
    "TrigramVectors",
    "VocabularyVectors",
    "WordSequences",
    "WordRows",
    "WordSketch",
    "WordVectors",
    "unit",
]
