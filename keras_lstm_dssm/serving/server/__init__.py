"""The local server: models from disk, behind TF Serving's gRPC services."""

from keras_lstm_dssm.serving.server.prediction_server import PredictionServer

__all__ = ["PredictionServer"]
