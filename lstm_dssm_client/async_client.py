"""AsyncClient: asks a server over gRPC, with coroutines."""

from collections.abc import Iterable

import grpc
import numpy as np

from lstm_dssm_client.calls import Answer, Calls
from lstm_dssm_client.grpc_connection import Connection
from lstm_dssm_client.results import (
    Hit,
    KeyParts,
    Prediction,
    Version,
    VersionStatus,
)
from lstm_dssm_client.signatures import Signature


class AsyncClient(Connection):
    """Sends texts like `Client`, with coroutines.

    It is made and used in a running event loop. Arguments, results and errors
    are those of `Client`.

    Example:
        >>> async def main():
        ...     async with AsyncClient("127.0.0.1:8500") as client:
        ...         return await client.search(["angle bracket"], k=1)
        >>> asyncio.run(main())
        [[Hit(id='steel angle', score=0.91)]]
    """

    insecure_channel = staticmethod(grpc.aio.insecure_channel)
    secure_channel = staticmethod(grpc.aio.secure_channel)

    async def encode(
        self,
        texts: Iterable[str | bytes],
        model: str = "query_encoder",
        version: Version = None,
    ) -> np.ndarray:
        """See `Client.encode`."""
        return await self._run(self._calls.encode(texts, model, version))

    async def search(
        self,
        texts: Iterable[str | bytes],
        k: int = 5,
        model: str = "retriever",
        version: Version = None,
        tags: Iterable[str] = (),
    ) -> list[list[Hit]]:
        """See `Client.search`."""
        return await self._run(
            self._calls.search(texts, k, model, version, tags)
        )

    async def score(
        self,
        query: str | bytes,
        documents: Iterable[str | bytes],
        model: str = "scorer",
        version: Version = None,
    ) -> np.ndarray:
        """See `Client.score`."""
        return await self._run(
            self._calls.score(query, documents, model, version)
        )

    async def score_pairs(
        self,
        queries: Iterable[str | bytes],
        documents: Iterable[str | bytes],
        model: str = "scorer",
        version: Version = None,
    ) -> np.ndarray:
        """See `Client.score_pairs`."""
        return await self._run(
            self._calls.score_pairs(queries, documents, model, version)
        )

    async def keys(
        self,
        texts: Iterable[str | bytes],
        n: int = 5,
        model: str = "keyvec",
        version: Version = None,
    ) -> list[KeyParts]:
        """See `Client.keys`."""
        return await self._run(self._calls.keys(texts, n, model, version))

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
            self._calls.predict(model, inputs, outputs, version, signature)
        )

    async def signatures(
        self, model: str, version: Version = None
    ) -> dict[str, Signature]:
        """See `Client.signatures`."""
        return await self._run(self._calls.signatures(model, version))

    async def status(self, model: str) -> dict[int, VersionStatus]:
        """See `Client.status`."""
        return await self._run(self._calls.status(model))

    async def close(self) -> None:
        """Closes the connection; leaving the `async with` block does, too."""
        await self._channel.close()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _run(self, calls: Calls[Answer]) -> Answer:
        reply = None
        while True:
            try:
                method, request = calls.send(reply)
            except StopIteration as end:
                return end.value
            call = self._methods[method]
            try:
                reply = await call(
                    request, timeout=self.timeout, metadata=self._metadata
                )
            except grpc.RpcError as error:
                raise self._error(error, request) from error
