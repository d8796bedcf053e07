"""Optimizers: Nesterov's momentum of Palangi et al. 2016, and Adagrad."""

from keras_lstm_dssm.optimizers.adagrad import Adagrad
from keras_lstm_dssm.optimizers.nesterov_momentum import (
    NesterovMomentum,
    NesterovSchedule,
)

__all__ = ["Adagrad", "NesterovMomentum", "NesterovSchedule"]
