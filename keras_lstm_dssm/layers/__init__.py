"""Keras layers: hashing, trigram embedding, recurrences, cosine."""

from keras_lstm_dssm.layers.cells import PeepholeLSTMCell, RNNCell
from keras_lstm_dssm.layers.cosine import cosine_matrix, cosine_pairs, unit
from keras_lstm_dssm.layers.letter_trigrams import LetterTrigrams
from keras_lstm_dssm.layers.packed_recurrence import PackedSequence, pack
from keras_lstm_dssm.layers.recurrent import PeepholeLSTM, Recurrent
from keras_lstm_dssm.layers.trigram_embedding import (
    TrigramEmbedding,
    gather_sum,
)
from keras_lstm_dssm.layers.word_sketch import WordSketch

__all__ = [
    "LetterTrigrams",
    "PackedSequence",
    "PeepholeLSTM",
    "PeepholeLSTMCell",
    "RNNCell",
    "Recurrent",
    "TrigramEmbedding",
    "WordSketch",
    "cosine_matrix",
    "cosine_pairs",
    "gather_sum",
    "pack",
    "unit",
]
