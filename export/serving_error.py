"""What the client raises when a call fails."""

import grpc


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
            message = (
                f"{target}, model {model}: {self.code.name}: {self.details}"
            )
        super().__init__(" ".join(message.split()))
