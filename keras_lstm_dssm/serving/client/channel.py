"""How clients connect: message sizes, deadlines, retries, errors."""

import json
from typing import Any

import grpc

from keras_lstm_dssm.errors import InputError

_ADVICE = {
    grpc.StatusCode.NOT_FOUND: (
        "check the model's name and version; `lstm-dssm-query --status` tells "
        "the versions"
    ),
    grpc.StatusCode.INVALID_ARGUMENT: (
        "`Client.signatures` tells what the model takes and gives, the "
        "server's models.config which labels there are"
    ),
    grpc.StatusCode.FAILED_PRECONDITION: (
        "`Client.signatures` tells what the model takes and gives"
    ),
    grpc.StatusCode.DEADLINE_EXCEEDED: "give it more time, or fewer texts",
    grpc.StatusCode.RESOURCE_EXHAUSTED: (
        "send fewer texts at once, or raise max_message_mb"
    ),
}


class ServingError(OSError):
    """A call that the server refused, or that did not reach it.

    It is an `OSError`, as `ConnectionError` and `TimeoutError` are: the
    cause lies outside this program. The message is one line.

    Attributes:
        code: The status, for example `grpc.StatusCode.NOT_FOUND`.
        details: The server's own message.
        model: The model that was asked.
    """

    # What is pickled is the message, and the attributes apart from it.
    def __init__(
        self,
        message: str,
        code: grpc.StatusCode = grpc.StatusCode.UNKNOWN,
        details: str = "",
        model: str = "",
    ) -> None:
        super().__init__(message)
        self.code = code
        self.details = details
        self.model = model

    @classmethod
    def of(
        cls, error: grpc.RpcError, target: str, model: str
    ) -> "ServingError":
        """Words what gRPC raised.

        Args:
            error: It.
            target: The server's address.
            model: The model that was asked.
        """
        code, details = error.code(), error.details()
        if code is grpc.StatusCode.UNAVAILABLE:
            message = (
                f"no answer from {target}: start a server with "
                "lstm-dssm-serve, check address and port, or ask again when "
                f"it is less busy ({details})"
            )
        else:
            advice = _ADVICE.get(code)
            message = f"{target}, model {model}: {code.name}: {details}" + (
                f"; {advice}" if advice else ""
            )
        return cls(" ".join(message.split()), code, details, model)


# gRPC's own retries: they count against the call's deadline, wait 0.1, 0.2,
# 0.4 and 0.8 seconds, each a fifth more or less by chance, and repeat only
# what the server did not do (UNAVAILABLE: it is starting, stopping, or its
# queue is full) or may do later (RESOURCE_EXHAUSTED).
# https://grpc.io/docs/guides/retry/
_RETRIES = {
    "methodConfig": [
        {
            "name": [{}],
            "retryPolicy": {
                "maxAttempts": 5,
                "initialBackoff": "0.1s",
                "maxBackoff": "2s",
                "backoffMultiplier": 2,
                "retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED"],
            },
        }
    ]
}

_DAY = 86_400


def channel_options(max_message_mb: int) -> list[tuple[str, Any]]:
    """Returns the options of a client's connection.

    Args:
        max_message_mb: Largest message sent or accepted, in MiB.

    Raises:
        InputError: It is not from 1 to 2047.
    """
    if not 1 <= max_message_mb <= 2047:
        raise InputError(
            f"max_message_mb is {max_message_mb}; expected 1 to 2047"
        )
    size = max_message_mb << 20
    return [
        ("grpc.max_receive_message_length", size),
        ("grpc.max_send_message_length", size),
        # gRPC would send even 127.0.0.1 through $http_proxy.
        ("grpc.enable_http_proxy", 0),
        ("grpc.service_config", json.dumps(_RETRIES)),
        # A request that is too large for this buffer would not be repeated.
        ("grpc.per_rpc_retry_buffer_size", size),
        # A server that was started anew is found within the retries.
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", 1000),
        # Each client has a connection of its own.
        ("grpc.use_local_subchannel_pool", 1),
    ]


def checked_timeout(timeout: float) -> float:
    """Returns a deadline in seconds; every call has one.

    Raises:
        InputError: It is not above 0, or more than a day. (gRPC takes a
            number that is far too large for one that has passed.)
    """
    if not 0 < timeout <= _DAY:
        raise InputError(
            f"timeout is {timeout}; expected seconds above 0, {_DAY:,} at most"
        )
    return timeout
