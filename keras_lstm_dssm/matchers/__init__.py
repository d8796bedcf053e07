"""Matchers: two sequences of word vectors -> a score."""

from keras_lstm_dssm.matchers.matcher import Matcher
from keras_lstm_dssm.matchers.mv_lstm import MVLSTM
from keras_lstm_dssm.matchers.recurrent_cosine import RecurrentCosine

__all__ = ["MVLSTM", "Matcher", "RecurrentCosine"]
