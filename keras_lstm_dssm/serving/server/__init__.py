"""The local server, with TF Serving's gRPC services for models on disk."""

from keras_lstm_dssm.serving.server.prediction_server import PredictionServer

__all__ = ["PredictionServer"]
