"""Many clients of one server at once, without a pause between requests."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import grpc
import numpy as np
from tensorflow_serving.apis.predict_pb2 import PredictRequest
from tensorflow_serving.apis.prediction_service_pb2_grpc import (
    PredictionServiceStub,
)

TIMEOUT = 30.0


class Load(NamedTuple):
    """What the clients of a server saw."""

    milliseconds: list[float]
    errors: list[str]
    versions: set[int]
    seconds: float

    def figures(self) -> dict[str, Any]:
        """Returns counts, percentiles and rate; the first error, if any."""
        p50, p99 = np.percentile(self.milliseconds or [np.nan], [50, 99])
        figures: dict[str, Any] = {
            "requests": len(self.milliseconds) + len(self.errors),
            "errors": len(self.errors),
            "p50_ms": float(p50),
            "p99_ms": float(p99),
            "max_ms": max(self.milliseconds, default=np.nan),
            "requests_per_second": len(self.milliseconds) / self.seconds,
            "versions": len(self.versions),
        }
        if self.errors:
            figures["first_error"] = self.errors[0]
        return figures


def stream(
    target: str,
    requests: Sequence[PredictRequest],
    clients: int,
    seconds: float,
) -> Load:
    """Asks a server from many clients for a while.

    Each client has its own connection and sends the next request when the
    last one is answered. Nothing is repeated: a failed request counts.

    Args:
        target: The server's address.
        requests: Sent in turn.
        clients: How many at once.
        seconds: How long.
    """
    load = Load([], [], set(), seconds)
    turn = list(requests)

    async def run() -> None:
        end = time.perf_counter() + seconds
        await asyncio.gather(
            *(
                _client(target, turn[place:] + turn[:place], end, load)
                for place in range(clients)
            )
        )

    asyncio.run(run())
    return load


async def _client(
    target: str, requests: Sequence[PredictRequest], end: float, load: Load
) -> None:
    options = [
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.enable_retries", 0),
    ]
    async with grpc.aio.insecure_channel(target, options=options) as channel:
        predict = PredictionServiceStub(channel).Predict
        while True:
            for request in requests:
                start = time.perf_counter()
                if start >= end:
                    return
                try:
                    reply = await predict(request, timeout=TIMEOUT)
                except grpc.RpcError as error:
                    load.errors.append(f"{error.code()}: {error.details()}")
                    continue
                taken = time.perf_counter() - start
                load.milliseconds.append(1000 * taken)
                load.versions.add(reply.model_spec.version.value)
