"""Callbacks: the best epoch on dev, checkpoints, failures."""

from keras_lstm_dssm.callbacks.best_epoch import RankingEvaluation

__all__ = ["RankingEvaluation"]
