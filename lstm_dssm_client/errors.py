"""InputError and ServingError: what goes wrong, in one line."""

from typing import Any


class InputError(ValueError):
    """Raised for wrong input, such as a file, an argument or a port.

    The message is one line. It says what was found and where, what was
    expected and what to do. The programs print it and exit with code 1. Any
    other exception is a defect of this package.

    Example:
    >>> from lstm_dssm_client.texts import as_bytes
    >>> try:
    ...     as_bytes("bolt")
    ... except InputError as error:
    ...     print(error)
    expected a list of texts, got one text, 'bolt'; write [text]
    """


class ServingError(OSError):
    """Raised if the server rejects a request, or the request does not reach it.

    It is an `OSError`, like `ConnectionError` and `TimeoutError`, because its
    cause is outside this program. The message is one line.

    Attributes:
        code: The status code: over gRPC a `grpc.StatusCode`, such as
            `grpc.StatusCode.NOT_FOUND`; over HTTP an `http.HTTPStatus`, such
            as `HTTPStatus.NOT_FOUND`, or None if there was no reply.
        details: The server's message.
        model: The name of the requested model.

    Example:
    >>> try:
    ...     raise ServingError("no model x", code=404, model="x")
    ... except ServingError as error:
    ...     print(error, error.code, error.model)
    no model x 404 x
    """

    # Defaults, because pickle restores an error from its message alone and
    # sets the attributes afterwards.
    def __init__(
        self, message: str, code: Any = None, details: str = "", model: str = ""
    ) -> None:
        super().__init__(message)
        self.code = code
        self.details = details
        self.model = model


def no_answer(target: str, details: str) -> str:
    """Returns the message for a server that cannot be reached.

    Args:
        target: The server's address.
        details: What went wrong.
    """
    return (
        f"no answer from {target}: start a server with lstm-dssm-serve, check"
        " address and port, or try again when the server is less busy"
        f" ({details})"
    )
