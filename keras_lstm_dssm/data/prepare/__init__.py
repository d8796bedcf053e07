"""`prepare`: catalogue and log -> a data folder."""

from keras_lstm_dssm.data.prepare.prepare import prepare

__all__ = ["prepare"]
