"""Evaluate a run: what `lstm-dssm-evaluate` measures, and beside what."""

from keras_lstm_dssm.evaluate.run import evaluate_run

__all__ = ["evaluate_run"]
