"""Compares the model of a run with baselines, for `lstm-dssm-evaluate`."""

from keras_lstm_dssm.evaluate.run import evaluate_run

__all__ = ["evaluate_run"]
