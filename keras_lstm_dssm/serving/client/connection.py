"""Connection: what both clients have in common."""

from collections.abc import Callable
from typing import Any

import grpc
from tensorflow_serving.apis.model_service_pb2_grpc import ModelServiceStub
from tensorflow_serving.apis.prediction_service_pb2_grpc import (
    PredictionServiceStub,
)

from keras_lstm_dssm.serving.client.calls import ModelCalls
from keras_lstm_dssm.serving.client.channel import (
    ServingError,
    channel_options,
    checked_timeout,
)


class Connection:
    """Holds what both clients have: a channel, its methods, a deadline."""

    open_channel: Callable[..., Any]

    def __init__(
        self, target: str, timeout: float = 5.0, max_message_mb: int = 64
    ) -> None:
        self.target = target
        self.timeout = checked_timeout(timeout)
        self._channel = channel = self.open_channel(
            target, options=channel_options(max_message_mb)
        )
        self._methods: dict[str, Callable[..., Any]] = {
            **vars(PredictionServiceStub(channel)),
            **vars(ModelServiceStub(channel)),
        }
        self._calls = ModelCalls()

    def _error(self, error: grpc.RpcError, request: Any) -> ServingError:
        model = request.model_spec.name
        return ServingError.from_rpc_error(error, self.target, model)
