"""A small model of each kind, compiled, with the same weights each time."""

from typing import Any

import keras

import keras_lstm_dssm as dssm
from keras_lstm_dssm.layers import VocabularyVectors
from keras_lstm_dssm.matchers import MVLSTM

VOCABULARY = ["a", "b", "c", "d", "e"]


def small_best(**options: Any) -> dssm.TwoTower:
    """Makes towers of the preset best: adapted, with lazily updated rows."""
    keras.utils.set_random_seed(0)
    config = {"cells": 2, "bag": 2, "sketch": 3}
    model = dssm.build_model(
        dssm.PRESETS["best"].replace(encoder_config=config)
    )
    model.adapt(["b a", "c b", "d c", "e d", "e d e"])
    model.compile(dssm.NesterovMomentum(0.1), dssm.CosineSoftmax(), **options)
    return model


def small_scorer(**options: Any) -> dssm.PairScorer:
    """Makes an MV-LSTM."""
    keras.utils.set_random_seed(0)
    model = dssm.PairScorer(
        VocabularyVectors(VOCABULARY, 3),
        MVLSTM(3, interaction="cosine", units=2, k=2, hidden=3),
    )
    model.compile(dssm.Adagrad(0.03), dssm.PairwiseHinge(), **options)
    return model


def small_keyvec(**options: Any) -> dssm.KeyVec:
    """Makes a KeyVec."""
    keras.utils.set_random_seed(0)
    words = VocabularyVectors(VOCABULARY, 3, max_words=8)
    model = dssm.KeyVec(words, filters=2, windows=[2], units=2, dimension=3)
    model.compile(keras.optimizers.Adam(0.02), dssm.KeyVecLoss(), **options)
    return model
