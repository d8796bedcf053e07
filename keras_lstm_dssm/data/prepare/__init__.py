"""Makes a data folder from a catalogue and a click log."""

from keras_lstm_dssm.data.prepare.pipeline import Prepared, load_data, prepare

__all__ = ["Prepared", "load_data", "prepare"]
