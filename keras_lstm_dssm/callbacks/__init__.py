"""Callbacks: momentum, the best epoch on dev, checkpoints, failures."""

from keras_lstm_dssm.callbacks.best_epoch import RankingEvaluation
from keras_lstm_dssm.optimizers.nesterov_momentum import NesterovSchedule

__all__ = ["NesterovSchedule", "RankingEvaluation"]
