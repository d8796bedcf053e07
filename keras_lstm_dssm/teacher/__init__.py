"""Sentence encoders of others, and how towers learn from their vectors."""

from keras_lstm_dssm.teacher.outside_encoder import open_outside_encoder

__all__ = ["open_outside_encoder"]
