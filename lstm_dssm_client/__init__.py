"""Clients of a model server over HTTP and gRPC, without TensorFlow.

Two distributions contain this package: `keras-lstm-dssm`, and the small
`lstm-dssm-client`, which needs only NumPy. The gRPC clients, `Client` and
`AsyncClient`, also need `grpcio` and `protobuf`. `LocalModel`, for use without
a server, needs NumPy and `safetensors`.

Example:
    >>> from lstm_dssm_client import HttpClient
    >>> with HttpClient("http://127.0.0.1:8501") as client:
    ...     client.search(["angle bracket"], k=2)
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lstm_dssm_client.errors import InputError, ServingError
    from lstm_dssm_client.grpc_client import (
        AsyncClient,
        Client,
        tls_credentials,
    )
    from lstm_dssm_client.http_client import HttpClient, tls_context
    from lstm_dssm_client.local_model import LocalModel
    from lstm_dssm_client.signatures import (
        ExplainedHit,
        Hit,
        KeyParts,
        Prediction,
        Signature,
        TensorInfo,
        VersionStatus,
    )

_MODULES = {
    "AsyncClient": "grpc_client",
    "Client": "grpc_client",
    "HttpClient": "http_client",
    "InputError": "errors",
    "LocalModel": "local_model",
    "ServingError": "errors",
    "tls_context": "http_client",
    "tls_credentials": "grpc_client",
}
"""Public name -> module. Names that are missing here are in `signatures`."""

__all__ = [
    "AsyncClient",
    "Client",
    "ExplainedHit",
    "Hit",
    "HttpClient",
    "InputError",
    "KeyParts",
    "LocalModel",
    "Prediction",
    "ServingError",
    "Signature",
    "TensorInfo",
    "VersionStatus",
    "tls_context",
    "tls_credentials",
]

_EXTRAS = {"grpc": "grpc", "google": "grpc", "safetensors": "local"}
"""Imported package -> the extra that installs the package."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    try:
        module = importlib.import_module(
            f"{__name__}.{_MODULES.get(name, 'signatures')}"
        )
    except ModuleNotFoundError as error:
        extra = _EXTRAS.get((error.name or "").partition(".")[0])
        if not extra:
            raise
        raise ImportError(
            f"{name} needs {error.name}, which is not installed: pip install "
            f'"lstm-dssm-client[{extra}]"'
        ) from error
    return getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
