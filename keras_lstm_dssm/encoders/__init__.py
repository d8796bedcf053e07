"""Text encoders: from strings to vectors."""

from keras_lstm_dssm.encoders.combined_encoder import CombinedEncoder
from keras_lstm_dssm.encoders.feed_forward_encoders import (
    CLSMEncoder,
    DSSMEncoder,
    WordSumEncoder,
)
from keras_lstm_dssm.encoders.layer_encoder import LayerEncoder
from keras_lstm_dssm.encoders.text_encoder import (
    BidirectionalLSTMEncoder,
    LSTMEncoder,
    RNNEncoder,
    TextEncoder,
)

__all__ = [
    "BidirectionalLSTMEncoder",
    "CLSMEncoder",
    "CombinedEncoder",
    "DSSMEncoder",
    "LSTMEncoder",
    "LayerEncoder",
    "RNNEncoder",
    "TextEncoder",
    "WordSumEncoder",
]
