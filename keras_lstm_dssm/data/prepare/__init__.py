"""`prepare`: catalogue and log -> a data folder."""

from keras_lstm_dssm.data.prepare.pipeline import Prepared, load_data, prepare

__all__ = ["Prepared", "load_data", "prepare"]
