"""Trains two towers, pair scorers and KeyVecs, and writes run folders."""

from keras_lstm_dssm.settings.training import TrainingConfig
from keras_lstm_dssm.training.document_targets import (
    DocumentExamples,
    DocumentTargets,
    KeyWords,
)
from keras_lstm_dssm.training.mining import HardNegatives, mine_negatives
from keras_lstm_dssm.training.salience import salience_teacher
from keras_lstm_dssm.training.train import resume, train

__all__ = [
    "DocumentExamples",
    "DocumentTargets",
    "HardNegatives",
    "KeyWords",
    "TrainingConfig",
    "mine_negatives",
    "resume",
    "salience_teacher",
    "train",
]
