"""What training needs: loss, optimizer, momentum schedule."""

from keras_lstm_dssm.training.cosine_softmax import CosineSoftmax
from keras_lstm_dssm.training.nesterov_momentum import NesterovMomentum
from keras_lstm_dssm.training.nesterov_schedule import NesterovSchedule

__all__ = ["CosineSoftmax", "NesterovMomentum", "NesterovSchedule"]
