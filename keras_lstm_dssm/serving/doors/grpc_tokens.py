"""TokenInterceptor: a gRPC server that answers only requests with a token."""

from collections.abc import Callable, Iterator
from typing import Any

import grpc

from keras_lstm_dssm.serving.doors.tokens import TokenFile

_HEALTH = "/grpc.health.v1.Health/"

NO_TOKEN = (
    "the request has no valid token: send the header authorization: Bearer"
    " TOKEN, with a token of the server's --token_file"
)
"""The message of a refusal, over gRPC and HTTP."""


def _refuse(_: Iterator[bytes], context: grpc.ServicerContext) -> None:
    context.abort(grpc.StatusCode.UNAUTHENTICATED, NO_TOKEN)


# As the handler of a stream, it answers before the message is read.
_REFUSAL = grpc.stream_unary_rpc_method_handler(_refuse)


class TokenInterceptor(grpc.ServerInterceptor):
    """Refuses requests without a token, as UNAUTHENTICATED.

    Health checks need no token: they come from load balancers, and tell
    only whether the server and its models are ready.

    Args:
        tokens: The tokens that are allowed.

    Example:
        >>> grpc.server(pool, interceptors=[TokenInterceptor(tokens)])
    """

    def __init__(self, tokens: TokenFile) -> None:
        self._tokens = tokens

    def intercept_service(
        self,
        continuation: Callable[[Any], Any],
        handler_call_details: Any,
    ) -> Any:
        """Returns the handler of the request, or the one that refuses it."""
        if handler_call_details.method.startswith(_HEALTH):
            return continuation(handler_call_details)
        headers = [
            value
            for key, value in handler_call_details.invocation_metadata
            if key == "authorization"
        ]
        # Of several headers none is taken.
        if len(headers) == 1 and self._tokens.allows(headers[0]):
            return continuation(handler_call_details)
        return _REFUSAL
