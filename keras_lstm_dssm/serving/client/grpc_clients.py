"""gRPC clients for TF Serving and for the local server: sync and asyncio."""

from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any

import grpc
import numpy as np
from tensorflow_serving.apis.model_service_pb2_grpc import ModelServiceStub
from tensorflow_serving.apis.prediction_service_pb2_grpc import (
    PredictionServiceStub,
)

from keras_lstm_dssm.export.signatures import Signature
from keras_lstm_dssm.serving.client import calls as client_calls
from keras_lstm_dssm.serving.client.calls import (
    Hit,
    Prediction,
    Result,
    Steps,
    Version,
    VersionStatus,
)
from keras_lstm_dssm.serving.client.channel import (
    ServingError,
    channel_options,
    checked_timeout,
)


def methods(channel: Any) -> dict[str, Callable[..., Any]]:
    """Returns the methods that clients call, by name."""
    stubs = PredictionServiceStub(channel), ModelServiceStub(channel)
    return {name: f for stub in stubs for name, f in vars(stub).items()}


class Client:
    """Encodes and searches text on a server; threads may share it.

    Args:
        target: The server's gRPC address, for example `127.0.0.1:8500`.
        timeout: Seconds that each request may take, its retries included.
            Many texts are sent as several requests, of 512 texts, half a
            megabyte or 262,144 hits each.
        max_message_mb: Largest reply accepted, in MiB (gRPC's own limit
            is 4, which is 10,000 vectors of 96 numbers).

    A request is repeated, up to four times and within its time, when the
    server is not available or out of resources. Every method raises
    `ServingError` when the server refuses, does not answer in time or is not
    there. `AsyncClient` has the same methods as coroutines.

    Example:
        >>> with Client("127.0.0.1:8500") as client:
        ...     client.encode(["angle bracket"]).shape
        ...     client.search(["angle bracket"], k=2)
        (1, 96)
        [[Hit(id='steel angle', score=0.91), Hit(id='bracket', score=0.87)]]
    """

    def __init__(
        self, target: str, timeout: float = 5.0, max_message_mb: int = 64
    ) -> None:
        self.target = target
        self.timeout = checked_timeout(timeout)
        self._channel = grpc.insecure_channel(
            target, options=channel_options(max_message_mb)
        )
        self._methods = methods(self._channel)

    def encode(
        self,
        texts: Iterable[str | bytes],
        model: str = "query_encoder",
        version: Version = None,
    ) -> np.ndarray:
        """Returns the vectors of texts, all of one version.

        When another version begins to answer between two requests, all texts
        are sent again.

        Args:
            texts: n texts.
            model: The encoder's name on the server.
            version: The encoder's version or its label, by default the
                newest.

        Returns:
            float32 [n, d], rows of unit length.

        Raises:
            InputError: Versions answer in turn, as behind a load balancer
                during a roll-out.
        """
        return self._run(client_calls.encode(texts, model, version))

    def search(
        self,
        texts: Iterable[str | bytes],
        k: int = 5,
        model: str = "retriever",
        version: Version = None,
    ) -> list[list[Hit]]:
        """Returns the k best documents of each text, best first.

        Args:
            texts: n queries.
            k: How many documents; fewer come when there are fewer.
            model: The retriever's name on the server.
            version: The retriever's version or its label, by default the
                newest.

        Returns:
            n lists of `Hit`.

        Raises:
            InputError: k is below 1, or no int32.
        """
        return self._run(client_calls.search(texts, k, model, version))

    def predict(
        self,
        model: str,
        inputs: dict[str, np.ndarray],
        outputs: Iterable[str] = (),
        version: Version = None,
        signature: str = "",
    ) -> Prediction:
        """Runs any signature of any model, in one request.

        Args:
            model: The model's name on the server.
            inputs: By name; strings as an object array of bytes.
            outputs: The outputs wanted, by default all.
            version: The version or its label, by default the newest.
            signature: By default `serving_default`.

        Returns:
            The outputs, and which version gave them.
        """
        return self._run(
            client_calls.predict(model, inputs, outputs, version, signature)
        )

    def signatures(
        self, model: str, version: Version = None
    ) -> dict[str, Signature]:
        """Returns what a model takes and gives, by signature name."""
        return self._run(client_calls.model_signatures(model, version))

    def status(self, model: str) -> dict[int, VersionStatus]:
        """Returns where each version of a model stands, newest first."""
        return self._run(client_calls.model_status(model))

    def close(self) -> None:
        """Closes the connection; leaving the `with` block does it too."""
        self._channel.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _run(self, steps: Steps[Result]) -> Result:
        reply = None
        while True:
            try:
                method, request = steps.send(reply)
            except StopIteration as end:
                return end.value
            try:
                reply = self._methods[method](request, timeout=self.timeout)
            except grpc.RpcError as error:
                raise ServingError.of(
                    error, self.target, request.model_spec.name
                ) from error


class AsyncClient:
    """`Client` with coroutines; made and used in a running event loop.

    Arguments, results and errors are those of `Client`.

    Example:
        >>> async def main():
        ...     async with AsyncClient("127.0.0.1:8500") as client:
        ...         return await client.search(["angle bracket"], k=1)
        >>> asyncio.run(main())
        [[Hit(id='steel angle', score=0.91)]]
    """

    def __init__(
        self, target: str, timeout: float = 5.0, max_message_mb: int = 64
    ) -> None:
        self.target = target
        self.timeout = checked_timeout(timeout)
        self._channel = grpc.aio.insecure_channel(
            target, options=channel_options(max_message_mb)
        )
        self._methods = methods(self._channel)

    async def encode(
        self,
        texts: Iterable[str | bytes],
        model: str = "query_encoder",
        version: Version = None,
    ) -> np.ndarray:
        """See `Client.encode`."""
        return await self._run(client_calls.encode(texts, model, version))

    async def search(
        self,
        texts: Iterable[str | bytes],
        k: int = 5,
        model: str = "retriever",
        version: Version = None,
    ) -> list[list[Hit]]:
        """See `Client.search`."""
        return await self._run(client_calls.search(texts, k, model, version))

    async def predict(
        self,
        model: str,
        inputs: dict[str, np.ndarray],
        outputs: Iterable[str] = (),
        version: Version = None,
        signature: str = "",
    ) -> Prediction:
        """See `Client.predict`."""
        return await self._run(
            client_calls.predict(model, inputs, outputs, version, signature)
        )

    async def signatures(
        self, model: str, version: Version = None
    ) -> dict[str, Signature]:
        """See `Client.signatures`."""
        return await self._run(client_calls.model_signatures(model, version))

    async def status(self, model: str) -> dict[int, VersionStatus]:
        """See `Client.status`."""
        return await self._run(client_calls.model_status(model))

    async def close(self) -> None:
        """Closes the connection; leaving the block does it too."""
        await self._channel.close()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _run(self, steps: Steps[Result]) -> Result:
        reply = None
        while True:
            try:
                method, request = steps.send(reply)
            except StopIteration as end:
                return end.value
            call = self._methods[method]
            try:
                reply = await call(request, timeout=self.timeout)
            except grpc.RpcError as error:
                raise ServingError.of(
                    error, self.target, request.model_spec.name
                ) from error
