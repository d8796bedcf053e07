"""Doors of a server, for gRPC and HTTP: tokens, TLS, and limits."""

from keras_lstm_dssm.serving.doors.asgi_guards import (
    BodyLimit,
    RequestLimit,
    TokenCheck,
)
from keras_lstm_dssm.serving.doors.exposure import check_exposure
from keras_lstm_dssm.serving.doors.grpc_tokens import TokenInterceptor
from keras_lstm_dssm.serving.doors.tls import ServerTLS
from keras_lstm_dssm.serving.doors.tokens import TokenFile
from lstm_dssm_client.token_file import read_token

__all__ = [
    "BodyLimit",
    "RequestLimit",
    "ServerTLS",
    "TokenCheck",
    "TokenFile",
    "TokenInterceptor",
    "check_exposure",
    "read_token",
]
