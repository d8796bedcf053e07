"""Text encoders: strings -> vectors; one file each."""

from keras_lstm_dssm.encoders.bilstm import BidirectionalLSTMEncoder
from keras_lstm_dssm.encoders.clsm import CLSMEncoder
from keras_lstm_dssm.encoders.combined import CombinedEncoder
from keras_lstm_dssm.encoders.dssm import DSSMEncoder
from keras_lstm_dssm.encoders.lstm import LSTMEncoder
from keras_lstm_dssm.encoders.rnn import RNNEncoder
from keras_lstm_dssm.encoders.text_encoder import TextEncoder

__all__ = [
    "BidirectionalLSTMEncoder",
    "CLSMEncoder",
    "CombinedEncoder",
    "DSSMEncoder",
    "LSTMEncoder",
    "RNNEncoder",
    "TextEncoder",
]
