"""Keras layers: word hashing, trigram embedding, recurrence, cosine."""

from keras_lstm_dssm.layers.cosine import cosine_matrix, cosine_pairs, unit
from keras_lstm_dssm.layers.interactions import (
    BilinearInteraction,
    CosineInteraction,
    DotInteraction,
    TensorInteraction,
)
from keras_lstm_dssm.layers.k_max_pooling import KMaxPooling, StrongestCells
from keras_lstm_dssm.layers.letter_trigrams import LetterTrigrams
from keras_lstm_dssm.layers.packed_sequence import (
    PackedSequence,
    Packing,
    pack,
)
from keras_lstm_dssm.layers.peephole_lstm import (
    PeepholeLSTM,
    PeepholeLSTMCell,
)
from keras_lstm_dssm.layers.recurrent import Recurrent
from keras_lstm_dssm.layers.recurrent_cell import RNNCell
from keras_lstm_dssm.layers.trigram_embedding import (
    TrigramEmbedding,
    gather_sum,
)
from keras_lstm_dssm.layers.trigram_vectors import TrigramVectors
from keras_lstm_dssm.layers.vocabulary_vectors import VocabularyVectors
from keras_lstm_dssm.layers.word_sketch import WordSketch
from keras_lstm_dssm.layers.word_vectors import WordSequences, WordVectors

__all__ = [
    "BilinearInteraction",
    "CosineInteraction",
    "DotInteraction",
    "KMaxPooling",
    "LetterTrigrams",
    "PackedSequence",
    "Packing",
    "PeepholeLSTM",
    "PeepholeLSTMCell",
    "RNNCell",
    "Recurrent",
    "StrongestCells",
    "TensorInteraction",
    "TrigramEmbedding",
    "TrigramVectors",
    "VocabularyVectors",
    "WordSequences",
    "WordSketch",
    "WordVectors",
    "cosine_matrix",
    "cosine_pairs",
    "gather_sum",
    "pack",
    "unit",
]
