"""Callbacks: the best epoch on dev, checkpoints, failures, gates."""

from keras_lstm_dssm.callbacks.best_epoch import RankingEvaluation
from keras_lstm_dssm.callbacks.gate_histograms import GateHistograms

__all__ = ["GateHistograms", "RankingEvaluation"]
