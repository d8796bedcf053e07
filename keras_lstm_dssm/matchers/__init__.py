"""Matchers: two sequences of word vectors -> a score."""

from keras_lstm_dssm.matchers.matcher import Matcher

__all__ = ["Matcher"]
