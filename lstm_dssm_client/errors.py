"""The two errors of this package, `InputError` and `ServingError`."""

import csv
import struct
import tokenize
import zipfile
import zlib
from http import HTTPStatus
from typing import Any

DAMAGE = (
    OSError, EOFError, ValueError, TypeError, LookupError, AttributeError,
    ArithmeticError, AssertionError, RuntimeError, SyntaxError, MemoryError,
    struct.error, tokenize.TokenError, zlib.error, zipfile.BadZipFile,
    csv.Error, StopIteration,
)  # fmt: skip
"""Exceptions that Python and libraries raise while they read a damaged file.
Functions that read files catch these exceptions and raise `InputError`."""


class InputError(ValueError):
    """Raised for wrong input, such as a file, an argument or a port.

    The message is one line: what was found and where, what was expected, and
    what to do. The programs print the message and exit with code 1.

    Example:
    >>> from lstm_dssm_client.signatures import as_bytes
    >>> try:
    ...     as_bytes("bolt")
    ... except InputError as error:
    ...     print(error)
    expected a list of texts, got one text, 'bolt'; write [text]
    """


class ServingError(OSError):
    """Raised if a server rejects a request, is too slow or is not reached.

    The message is one line.

    Attributes:
        code: The status code. Over gRPC: a `grpc.StatusCode`, such as
            `grpc.StatusCode.NOT_FOUND`. Over HTTP: an `http.HTTPStatus`, such
            as `HTTPStatus.NOT_FOUND`, or None if the connection failed.
        details: The server's message, or the reason of a failed connection.
        model: The name of the requested model.

    Example:
    >>> try:
    ...     raise ServingError("no model x", code=404, model="x")
    ... except ServingError as error:
    ...     print(error, error.code, error.model)
    no model x 404 x
    """

    # The defaults are for pickle, which gives the constructor only the message.
    def __init__(
        self, message: str, code: Any = None, details: str = "", model: str = ""
    ) -> None:
        super().__init__(message)
        self.code = code
        self.details = details
        self.model = model


_INPUTS = "the client's method `signatures` lists the inputs and outputs"
_ADVICE = {
    "NOT_FOUND": (
        "check the model's name and version; the client's `status`, or"
        " `lstm-dssm-search --show=status`, lists the versions"
    ),
    "INVALID_ARGUMENT": (
        f"{_INPUTS}; the server's models.config names the labels of versions"
    ),
    "FAILED_PRECONDITION": _INPUTS,
    "DEADLINE_EXCEEDED": "raise timeout, or send fewer texts in a request",
    "RESOURCE_EXHAUSTED": (
        "send shorter texts or a smaller k, or raise max_message_mb of the "
        "client or the server; if the server is busy, try again later"
    ),
    "UNAUTHENTICATED": "give the client a token of the server's --token_file",
}
"""Name of a gRPC status code -> what to do."""

_GRPC_NAMES = {
    HTTPStatus.NOT_FOUND: "NOT_FOUND",
    HTTPStatus.BAD_REQUEST: "INVALID_ARGUMENT",
    HTTPStatus.GATEWAY_TIMEOUT: "DEADLINE_EXCEEDED",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "RESOURCE_EXHAUSTED",
    HTTPStatus.TOO_MANY_REQUESTS: "RESOURCE_EXHAUSTED",
    HTTPStatus.UNAUTHORIZED: "UNAUTHENTICATED",
    HTTPStatus.SERVICE_UNAVAILABLE: "UNAVAILABLE",
    None: "UNAVAILABLE",
}


def code_name(code: Any) -> str:
    """Returns the gRPC name of a `ServingError.code`, such as "NOT_FOUND"."""
    return _GRPC_NAMES.get(code) or code.name


def serving_error(
    code: Any, details: str, target: str, model: str, status: str = ""
) -> ServingError:
    """Returns the error of a failed request; `status` is the code as text."""
    name = code_name(code)
    if name == "UNAVAILABLE" and "HTTP/2" in details:
        message = (
            f"{target} does not speak gRPC, and may be a server's HTTP port:"
            " give the port that lstm-dssm-serve prints after `serving on`, or"
            f" use HttpClient ({details})"
        )
    elif name == "UNAVAILABLE":
        message = (
            f"no answer from {target}: start a server with lstm-dssm-serve,"
            " check address and port, or try again when the server is less"
            f" busy ({details})"
        )
    else:
        parts = [f"{target}, model {model}", status, details]
        advice = f"; {_ADVICE[name]}" if name in _ADVICE else ""
        message = ": ".join(filter(None, parts)) + advice
    return ServingError(" ".join(message.split()), code, details, model)
