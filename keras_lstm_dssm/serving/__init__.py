"""A local server with the services of TF Serving, and clients.

`PredictionServer` answers over gRPC and HTTP; `Bounds` and `Security` are its
options. `Client`, `AsyncClient` and `HttpClient` send requests to this server
or to TF Serving. `SavedEncoder`, `SavedKeyVec`, `SavedRetriever` and
`SavedScorer` run an exported model in this process.
"""

from keras_lstm_dssm.serving.limits import Bounds
from keras_lstm_dssm.serving.prediction_server import PredictionServer
from keras_lstm_dssm.serving.saved_models import (
    SavedEncoder,
    SavedKeyVec,
    SavedRetriever,
    SavedScorer,
)
from keras_lstm_dssm.serving.security import Security, ServerTLS, TokenFile
from lstm_dssm_client import (
    ExplainedHit,
    Hit,
    HttpClient,
    KeyParts,
    Prediction,
    ServingError,
    VersionStatus,
    tls_context,
)
from lstm_dssm_client.grpc_client import AsyncClient, Client, tls_credentials
from lstm_dssm_client.options import read_token

__all__ = [
    "AsyncClient",
    "Bounds",
    "Client",
    "ExplainedHit",
    "Hit",
    "HttpClient",
    "KeyParts",
    "Prediction",
    "PredictionServer",
    "SavedEncoder",
    "SavedKeyVec",
    "SavedRetriever",
    "SavedScorer",
    "Security",
    "ServerTLS",
    "ServingError",
    "TokenFile",
    "VersionStatus",
    "read_token",
    "tls_context",
    "tls_credentials",
]
