"""A request that cannot be answered, in the words of TF Serving."""

import grpc

_LONGEST = 2000


class Fault(Exception):
    """The status of a failed call.

    Codes and messages are those of TensorFlow Serving (`predict_util.cc`,
    `server_core.cc`, `get_model_status_impl.cc`), so that a client tested
    against the local server meets nothing new in production.

    Args:
        code: For example `grpc.StatusCode.NOT_FOUND`.
        details: The message; the first 2,000 bytes of it count.
    """

    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        # It goes in a header, of 8 KiB at most; each byte may become three.
        details = details.encode()[:_LONGEST].decode(errors="ignore")
        super().__init__(details)
        self.code = code
        self.details = details


def invalid(details: str) -> Fault:
    """Returns the commonest one, INVALID_ARGUMENT."""
    return Fault(grpc.StatusCode.INVALID_ARGUMENT, details)
