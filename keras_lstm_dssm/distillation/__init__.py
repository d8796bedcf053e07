"""Third-party sentence encoders, which are teachers of word vectors."""

from keras_lstm_dssm.distillation.outside_encoder import open_outside_encoder
from keras_lstm_dssm.distillation.teacher_vectors import teach

__all__ = ["open_outside_encoder", "teach"]
