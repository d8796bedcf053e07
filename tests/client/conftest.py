"""What tests of the clients share."""

import asyncio
from collections.abc import Callable
from typing import Any


def run(client: Any, work: Callable[[Any], Any]) -> Any:
    """Does work with an asyncio client of the server of another client."""
    from lstm_dssm_client import AsyncClient

    async def main() -> Any:
        async with AsyncClient(client.target, timeout=20) as connected:
            return await work(connected)

    return asyncio.run(main())


def unit(rows: Any) -> Any:
    """Divides each row of numbers by its length."""
    import numpy as np

    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)
