"""Models of pairs of texts, made of encoders."""

from keras_lstm_dssm.models.presets import PRESETS, preset_encoder
from keras_lstm_dssm.models.two_tower import TwoTower

__all__ = ["PRESETS", "TwoTower", "preset_encoder"]
