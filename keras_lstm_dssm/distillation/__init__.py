"""Knowledge distillation: words or towers learn from sentence encoders."""

from keras_lstm_dssm.distillation.outside_encoder import open_outside_encoder
from keras_lstm_dssm.distillation.taught_batches import TaughtBatches
from keras_lstm_dssm.distillation.teacher_folder import TeacherVectors
from keras_lstm_dssm.distillation.teacher_vectors import teach

__all__ = ["TaughtBatches", "TeacherVectors", "open_outside_encoder", "teach"]
