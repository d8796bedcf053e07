"""What the client raises when a call fails."""

import grpc

_ADVICE = {
    grpc.StatusCode.NOT_FOUND: (
        "check the model's name and version; `lstm-dssm-query --status` tells "
        "the versions"
    ),
    grpc.StatusCode.INVALID_ARGUMENT: (
        "`Client.signatures` tells what the model takes and gives"
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

    Args:
        error: What gRPC raised.
        target: The server's address.
        model: The model that was asked.

    Attributes:
        code: The status, for example `grpc.StatusCode.NOT_FOUND`.
        details: The server's own message.
        model: The model that was asked.
    """

    def __init__(self, error: grpc.RpcError, target: str, model: str) -> None:
        self.code: grpc.StatusCode = error.code()
        self.details: str = error.details()
        self.model = model
        if self.code is grpc.StatusCode.UNAVAILABLE:
            message = (
                f"no server answers at {target}: start one with "
                "lstm-dssm-serve, or check address and port "
                f"({self.details})"
            )
        else:
            advice = _ADVICE.get(self.code)
            message = (
                f"{target}, model {model}: {self.code.name}: {self.details}"
                + (f"; {advice}" if advice else "")
            )
        super().__init__(" ".join(message.split()))
