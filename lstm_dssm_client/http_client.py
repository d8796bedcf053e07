"""HttpClient: asks a server over HTTP, without TensorFlow."""

import ssl

from lstm_dssm_client.calls import Answer, Calls
from lstm_dssm_client.errors import ServingError
from lstm_dssm_client.http_calls import HttpCalls
from lstm_dssm_client.http_connection import HttpConnection
from lstm_dssm_client.results import Version
from lstm_dssm_client.signatures import Signature
from lstm_dssm_client.text_client import TextClient


class HttpClient(TextClient):
    """Sends texts like `Client`, over HTTP, to either server's REST interface.

    It needs NumPy and the standard library only. Arguments and results of the
    methods are those of `Client`, the client over gRPC, with these
    differences: the `code` of a `ServingError` is an `http.HTTPStatus`, and a
    `Prediction` names its version only where a number was asked for.

    Args:
        target: The server's address, such as `http://127.0.0.1:8501` or
            `https://db1:8501/prefix`; `http://` may be left out.
        timeout: Seconds that each request may take, its repetitions included,
            by default 5. Many texts are sent as several requests, of 512
            texts or pairs, half a megabyte or 262,144 hits each.
        max_message_mb: Size of the largest reply, in MiB, by default 64.
        credentials: Settings of TLS for an address with https, such as from
            `tls_context`; by default the system's authorities.
        token: Token that each request has, as the server's `--token_file`
            wants it.

    Raises:
        InputError: The address is no URL, a number is out of range, or a
            token would be sent to another machine without encryption.

    A request is repeated, up to four times and within `timeout`, if the server
    cannot be reached, is not available (503) or too busy (429). Connections
    are kept open and used again; `$http_proxy` is not used.

    Example:
        >>> with HttpClient("http://127.0.0.1:8501") as client:
        ...     client.search(["angle bracket"], k=2)
        [[Hit(id='steel angle', score=0.91), Hit(id='bracket', score=0.87)]]
    """

    def __init__(
        self,
        target: str,
        timeout: float = 5.0,
        max_message_mb: int = 64,
        credentials: ssl.SSLContext | None = None,
        token: str | None = None,
    ) -> None:
        self._connection = HttpConnection(
            target, timeout, max_message_mb, credentials, token
        )
        self._calls: HttpCalls = HttpCalls()
        self.target = target
        self.timeout = timeout

    def signatures(
        self, model: str, version: Version = None
    ) -> dict[str, Signature]:
        """Returns the inputs and outputs of a model, by signature name."""
        return self._run(self._calls.signatures(model, version))

    def close(self) -> None:
        """Closes the connections; leaving the `with` block does, too."""
        self._connection.close()

    def _run(self, calls: Calls[Answer]) -> Answer:
        try:
            request = next(calls)
            while True:
                try:
                    reply = self._connection.send(request)
                except ServingError as error:
                    request = calls.throw(error)
                else:
                    request = calls.send(reply)
        except StopIteration as end:
            return end.value
