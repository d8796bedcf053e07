"""Keras layers: hashing, trigram embedding, recurrences, cosine."""

from keras_lstm_dssm.layers.cosine import cosine_matrix, cosine_pairs, unit
from keras_lstm_dssm.layers.gather_sum import gather_sum
from keras_lstm_dssm.layers.letter_trigrams import LetterTrigrams
from keras_lstm_dssm.layers.packed_sequence import PackedSequence, pack
from keras_lstm_dssm.layers.peephole_lstm import PeepholeLSTM
from keras_lstm_dssm.layers.peephole_lstm_cell import PeepholeLSTMCell
from keras_lstm_dssm.layers.recurrent import Recurrent
from keras_lstm_dssm.layers.rnn_cell import RNNCell
from keras_lstm_dssm.layers.trigram_embedding import TrigramEmbedding
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
