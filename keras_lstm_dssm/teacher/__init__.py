"""Sentence encoders of others, and their vectors, from which towers learn."""

from keras_lstm_dssm.teacher.outside_encoder import open_outside_encoder
from keras_lstm_dssm.teacher.teach import teach
from keras_lstm_dssm.teacher.teacher_vectors import TeacherVectors

__all__ = ["TeacherVectors", "open_outside_encoder", "teach"]
