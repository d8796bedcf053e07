"""What training needs: loss, optimizer, momentum schedule, run folders."""

from keras_lstm_dssm.training.cosine_softmax import CosineSoftmax
from keras_lstm_dssm.training.hard_negatives import (
    HardNegatives,
    mine_negatives,
)
from keras_lstm_dssm.training.nesterov_momentum import NesterovMomentum
from keras_lstm_dssm.training.nesterov_schedule import NesterovSchedule
from keras_lstm_dssm.training.run_folder import RunFolder, load_run
from keras_lstm_dssm.training.train_run import train_run

__all__ = [
    "CosineSoftmax",
    "HardNegatives",
    "NesterovMomentum",
    "NesterovSchedule",
    "RunFolder",
    "load_run",
    "mine_negatives",
    "train_run",
]
