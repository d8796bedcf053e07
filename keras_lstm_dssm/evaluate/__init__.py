"""Evaluate the model of a run beside baselines (`lstm-dssm-evaluate`)."""

from keras_lstm_dssm.evaluate.run import evaluate_run

__all__ = ["evaluate_run"]
