"""Matchers, layers that score two sequences of word vectors."""

from keras_lstm_dssm.matchers.arc import ARCI, ARCII
from keras_lstm_dssm.matchers.cntn import CNTN
from keras_lstm_dssm.matchers.deep_match import DeepMatch
from keras_lstm_dssm.matchers.matcher import Matcher
from keras_lstm_dssm.matchers.multi_gran_cnn import MultiGranCNN
from keras_lstm_dssm.matchers.mv_lstm import MVLSTM
from keras_lstm_dssm.matchers.rae import RAE
from keras_lstm_dssm.matchers.recurrent_cosine import RecurrentCosine
from keras_lstm_dssm.settings.presets import (
    ARC_I_OF_WAN,
    ARC_II_OF_WAN,
    CNTN_OF_WAN,
    MULTI_GRAN_CNN_OF_WAN,
)

__all__ = [
    "ARCI",
    "ARCII",
    "ARC_II_OF_WAN",
    "ARC_I_OF_WAN",
    "CNTN",
    "CNTN_OF_WAN",
    "MULTI_GRAN_CNN_OF_WAN",
    "MVLSTM",
    "RAE",
    "DeepMatch",
    "Matcher",
    "MultiGranCNN",
    "RecurrentCosine",
]
