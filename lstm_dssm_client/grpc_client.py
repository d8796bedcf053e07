"""Client: asks a server over gRPC; threads may share it."""

import grpc

from lstm_dssm_client.calls import Answer, Calls
from lstm_dssm_client.grpc_connection import Connection
from lstm_dssm_client.results import Version
from lstm_dssm_client.signatures import Signature
from lstm_dssm_client.text_client import TextClient


class Client(Connection, TextClient):
    """Sends texts to a server's models; threads may share a client.

    Inputs are checked against the model's signature before they are sent: on
    a server that batches, one request without rows, or of a wrong dtype or
    rank, would fail the requests of others. The signature is read before the
    first request for a model, and again after another version has answered.

    Args:
        target: The server's gRPC address, for example `127.0.0.1:8500`.
        timeout: Seconds that each request may take, its retries included, by
            default 5. Many texts are sent as several requests, of 512 texts
            or pairs, half a megabyte or 262,144 hits each.
        max_message_mb: Size of the largest message sent or accepted, in MiB,
            by default 64 (gRPC's own default is 4: 10,000 vectors of 96
            numbers).
        credentials: The certificates with which connections are encrypted,
            from `tls_credentials` or of gRPC's own functions; by default they
            are not encrypted.
        token: Token that each request has, as the server's `--token_file`
            wants it.

    Raises:
        InputError: A number is out of range; or a token would be sent to
            another machine without encryption.

    A request is retried, up to four times and within `timeout`, if the
    server is not available. Every method raises `ServingError` if the
    server rejects a request, does not answer in time or cannot be reached.
    `AsyncClient` has the same methods as coroutines.

    Example:
        >>> with Client("127.0.0.1:8500") as client:
        ...     client.encode(["angle bracket"]).shape
        ...     client.search(["angle bracket"], k=2)
        (1, 96)
        [[Hit(id='steel angle', score=0.91), Hit(id='bracket', score=0.87)]]
    """

    insecure_channel = staticmethod(grpc.insecure_channel)
    secure_channel = staticmethod(grpc.secure_channel)

    def signatures(
        self, model: str, version: Version = None
    ) -> dict[str, Signature]:
        """Returns the inputs and outputs of a model, by signature name."""
        return self._run(self._calls.signatures(model, version))

    def close(self) -> None:
        """Closes the connection; leaving the `with` block closes it, too."""
        self._channel.close()

    def _run(self, calls: Calls[Answer]) -> Answer:
        reply = None
        while True:
            try:
                method, request = calls.send(reply)
            except StopIteration as end:
                return end.value
            try:
                reply = self._methods[method](
                    request, timeout=self.timeout, metadata=self._metadata
                )
            except grpc.RpcError as error:
                raise self._error(error, request) from error
