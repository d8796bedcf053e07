"""Waits for an effect of another thread or process."""

import time
from collections.abc import Callable


def wait_until(done: Callable[[], object], seconds: float = 15) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, "the condition never became true"
        time.sleep(0.005)
