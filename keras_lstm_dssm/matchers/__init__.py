"""Matchers: layers that score two sequences of word vectors."""

from keras_lstm_dssm.matchers.deep_match import DeepMatch
from keras_lstm_dssm.matchers.matcher import Matcher
from keras_lstm_dssm.matchers.multi_gran_cnn import MultiGranCNN
from keras_lstm_dssm.matchers.mv_lstm import MVLSTM, RecurrentCosine
from keras_lstm_dssm.matchers.rae import RAE
from keras_lstm_dssm.matchers.sentence_convolutions import ARCI, ARCII, CNTN

__all__ = [
    "ARCI",
    "ARCII",
    "CNTN",
    "MVLSTM",
    "RAE",
    "DeepMatch",
    "Matcher",
    "MultiGranCNN",
    "RecurrentCosine",
]
