"""What the client raises when a call fails."""

import grpc

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
