"""LSTM-DSSM: click logs into query and document encoders."""

from keras_lstm_dssm.version import __version__

__all__ = ["__version__"]
