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
from keras_lstm_dssm.training.training_plan import (
    TrainingPlan,
    fit_clicks,
    make_plan,
)

__all__ = [
    "CosineSoftmax",
    "HardNegatives",
    "NesterovMomentum",
    "NesterovSchedule",
    "RunFolder",
    "TrainingPlan",
    "fit_clicks",
    "load_run",
    "make_plan",
    "mine_negatives",
    "train_run",
]
