"""Keras layers: word hashing, trigram embedding, recurrence, cosine."""

from keras_lstm_dssm.layers.convolution_stacks import (
    KMaxStack,
    WindowPoolingStack,
)
from keras_lstm_dssm.layers.cosine import cosine_matrix, cosine_pairs, unit
from keras_lstm_dssm.layers.document_encoder import DocumentEncoder
from keras_lstm_dssm.layers.dynamic_pooling import DynamicPooling
from keras_lstm_dssm.layers.interactions import (
    BilinearInteraction,
    CosineInteraction,
    DotInteraction,
    TensorInteraction,
)
from keras_lstm_dssm.layers.k_max_pooling import KMaxPooling, StrongestCells
from keras_lstm_dssm.layers.letter_trigrams import LetterTrigrams
from keras_lstm_dssm.layers.masked_convolution import MaskedConvolution
from keras_lstm_dssm.layers.ordered_k_max import OrderedKMax
from keras_lstm_dssm.layers.packed_sequence import (
    PackedSequence,
    Packing,
    pack,
)
from keras_lstm_dssm.layers.peephole_lstm import (
    PeepholeLSTM,
    PeepholeLSTMCell,
)
from keras_lstm_dssm.layers.phrase_similarity import PhraseSimilarity
from keras_lstm_dssm.layers.recurrent import Recurrent
from keras_lstm_dssm.layers.recurrent_cell import RNNCell
from keras_lstm_dssm.layers.scoring_mlp import ScoringMLP
from keras_lstm_dssm.layers.sentence_encoder import SentenceEncoder
from keras_lstm_dssm.layers.sentence_reader import SentenceReader
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
    "DocumentEncoder",
    "DotInteraction",
    "DynamicPooling",
    "KMaxPooling",
    "KMaxStack",
    "LetterTrigrams",
    "MaskedConvolution",
    "OrderedKMax",
    "PackedSequence",
    "Packing",
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
