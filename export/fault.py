"""A request that cannot be answered, in the words of TF Serving."""

import grpc


class Fault(Exception):
    """The status of a failed call.

    Codes and messages are those of TensorFlow Serving (`predict_util.cc`,
    `server_core.cc`, `get_model_status_impl.cc`), so that a client tested
    against the local server meets nothing new in production.

    Args:
        code: For example `grpc.StatusCode.NOT_FOUND`.
        details: The message.
    """

    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        super().__init__(details)
        self.code = code
        self.details = details


def invalid(details: str) -> Fault:
    """Returns the commonest one, INVALID_ARGUMENT."""
    return Fault(grpc.StatusCode.INVALID_ARGUMENT, details)
