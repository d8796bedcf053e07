"""Options and errors of a client's connection: sizes, deadlines, retries."""

import json
from typing import Any

import grpc

from lstm_dssm_client.connection_options import message_bytes
from lstm_dssm_client.errors import ServingError, no_answer

_ADVICE = {
    grpc.StatusCode.NOT_FOUND: (
        "check the model's name and version; `lstm-dssm-query --status` lists "
        "the versions"
    ),
    grpc.StatusCode.INVALID_ARGUMENT: (
        "`Client.signatures` returns the model's inputs and outputs, and the "
        "server's models.config has the labels"
    ),
    grpc.StatusCode.FAILED_PRECONDITION: (
        "`Client.signatures` returns the model's inputs and outputs"
    ),
    grpc.StatusCode.DEADLINE_EXCEEDED: (
        "raise timeout, or send fewer texts in a request"
    ),
    grpc.StatusCode.RESOURCE_EXHAUSTED: (
        "send shorter texts or a smaller k, or raise max_message_mb of the "
        "client or the server; if the server is busy, try again later"
    ),
    grpc.StatusCode.UNAUTHENTICATED: (
        "give the client a token of the server's --token_file"
    ),
}


def serving_error(
    error: grpc.RpcError, target: str, model: str
) -> ServingError:
    """Returns the `ServingError` for an error of gRPC.

    Args:
        error: The error that gRPC raised.
        target: The server's address.
        model: The name of the requested model.
    """
    code, details = error.code(), error.details()
    if code is grpc.StatusCode.UNAVAILABLE:
        message = no_answer(target, details)
    else:
        advice = f"; {_ADVICE[code]}" if code in _ADVICE else ""
        message = f"{target}, model {model}: {code.name}: {details}{advice}"
    return ServingError(" ".join(message.split()), code, details, model)


# gRPC's own retries. They count against the call's deadline, wait 0.1, 0.2,
# 0.4 and 0.8 seconds, each randomly changed by up to a fifth, and resend
# only requests that the server did not process (UNAVAILABLE: it is starting
# or stopping, or its queue is full). A message above a size limit
# (RESOURCE_EXHAUSTED) would be rejected each time.
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
                "retryableStatusCodes": ["UNAVAILABLE"],
            },
        }
    ]
}


def channel_options(max_message_mb: int) -> list[tuple[str, Any]]:
    """Returns the gRPC options of a client's connection.

    Args:
        max_message_mb: Size of the largest message sent or accepted, in MiB.

    Raises:
        InputError: `max_message_mb` is not from 1 to 2047.
    """
    size = message_bytes(max_message_mb)
    return [
        ("grpc.max_receive_message_length", size),
        ("grpc.max_send_message_length", size),
        # gRPC would send even 127.0.0.1 through $http_proxy.
        ("grpc.enable_http_proxy", 0),
        ("grpc.service_config", json.dumps(_RETRIES)),
        # A request that does not fit into this buffer is not retried.
        ("grpc.per_rpc_retry_buffer_size", size),
        # Short enough to reach a restarted server during the retries.
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", 1000),
        # By default all clients of a process share one connection.
        ("grpc.use_local_subchannel_pool", 1),
    ]
