"""Knowledge distillation: words or towers learn from sentence encoders."""

from keras_lstm_dssm.distillation.teacher_vectors import (
    TaughtBatches,
    TeacherVectors,
    open_outside_encoder,
    teach,
)

__all__ = ["TaughtBatches", "TeacherVectors", "open_outside_encoder", "teach"]
