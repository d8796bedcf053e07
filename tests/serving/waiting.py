"""Waiting for what another thread or process brings about."""

import time
from collections.abc import Callable


def wait_until(done: Callable[[], object], seconds: float = 15) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.005)
