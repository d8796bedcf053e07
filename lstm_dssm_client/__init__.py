"""Asks a server of models over HTTP or gRPC, without TensorFlow.

It is part of the package `keras_lstm_dssm`, and a small wheel by itself: it
needs NumPy only. `Client` in `lstm_dssm_client.grpc_client` and `AsyncClient`
in `lstm_dssm_client.async_client` also need `grpcio` and `protobuf`.

Example:
    >>> from lstm_dssm_client import HttpClient
    >>> with HttpClient("http://127.0.0.1:8501") as client:
    ...     client.search(["angle bracket"], k=2)
"""

from lstm_dssm_client.errors import InputError, ServingError
from lstm_dssm_client.http_client import HttpClient
from lstm_dssm_client.http_connection import tls_context
from lstm_dssm_client.results import Hit, KeyParts, Prediction, VersionStatus
from lstm_dssm_client.signatures import Signature, TensorInfo

__all__ = [
    "Hit",
    "HttpClient",
    "InputError",
    "KeyParts",
    "Prediction",
    "ServingError",
    "Signature",
    "TensorInfo",
    "VersionStatus",
    "tls_context",
]
