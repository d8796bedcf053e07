"""The client for asyncio: the same calls as `Client`'s, awaited."""

from collections.abc import Iterable
from types import TracebackType

import grpc
import numpy as np

from keras_lstm_dssm.export import client_calls
from keras_lstm_dssm.export.channel import channel_options, checked_timeout
from keras_lstm_dssm.export.client import methods
from keras_lstm_dssm.export.client_calls import (
    Hit,
    Prediction,
    Result,
    Steps,
    Version,
    VersionStatus,
)
from keras_lstm_dssm.export.serving_error import ServingError
from keras_lstm_dssm.export.signatures import Signature


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
