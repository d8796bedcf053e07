"""RequestSlots: in which thread a request runs, and how many there may be."""

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from keras_lstm_dssm.serving import limits
from keras_lstm_dssm.serving.limits import LoopTurns, RequestSlots
from keras_lstm_dssm.serving.servable import StatusError
from tests.serving.waiting import wait_until


@pytest.fixture(autouse=True)
def sure_of_quick(monkeypatch) -> None:
    """Raises the time limit of quick requests, as the machine may be busy."""
    monkeypatch.setattr(limits, "QUICK_SECONDS", 0.25)


@pytest.fixture
def slots() -> Iterator[RequestSlots]:
    with ThreadPoolExecutor(2, "pool") as pool:
        yield RequestSlots(pool, 3, LoopTurns())


def where() -> str:
    """Returns `pool` in a thread of the pool, otherwise `loop`."""
    name = threading.current_thread().name
    return "pool" if name.startswith("pool") else "loop"


def fail() -> str:
    raise ValueError


def ran(slots: RequestSlots, *keys: str | None) -> list[str]:
    async def run() -> list[str]:
        return [await slots.run(key, where) for key in keys]

    return asyncio.run(run())


def test_a_key_that_was_quick_needs_no_thread(slots):
    assert ran(slots, "a", "a", "b", "a") == ["pool", "loop", "pool", "loop"]
    assert ran(slots, None, None) == ["pool", "pool"]


def test_waiting_does_not_make_a_request_slow(slots):
    """For the interpreter, or a core, as in a server with many clients."""

    def wait() -> str:
        time.sleep(0.3)
        return where()

    async def run() -> list[str]:
        return [await slots.run("a", work) for work in (wait, where)]

    assert asyncio.run(run()) == ["pool", "loop"]


def test_slow_requests_stay_in_threads(slots, monkeypatch):
    assert ran(slots, "a", "a") == ["pool", "loop"]
    monkeypatch.setattr(limits, "QUICK_SECONDS", -1.0)
    monkeypatch.setattr(limits, "_SLOW_FACTOR", -1e9)
    assert ran(slots, "a", "a") == ["loop", "pool"]
    monkeypatch.setattr(limits, "QUICK_SECONDS", 0.25)
    assert ran(slots, "a", "a") == ["pool", "loop"]
    # One that was very slow is in a thread for a while.
    monkeypatch.setattr(limits, "QUICK_SECONDS", -1.0)
    monkeypatch.setattr(limits, "_SLOW_FACTOR", 1)
    monkeypatch.setattr(limits, "_SLOW_SECONDS", 0.1)
    assert ran(slots, "a") == ["loop"]
    monkeypatch.setattr(limits, "QUICK_SECONDS", 0.25)
    assert ran(slots, "a", "a") == ["pool", "pool"]
    time.sleep(0.1)
    assert ran(slots, "a") == ["loop"]


def test_errors_do_not_make_a_key_quick(slots):
    async def run() -> None:
        for _ in range(2):
            with pytest.raises(ValueError):
                await slots.run("a", fail)

    asyncio.run(run())
    assert ran(slots, "a", "a") == ["pool", "loop"]


def test_the_keys_that_are_remembered_are_bounded(slots, monkeypatch):
    monkeypatch.setattr(limits, "_MAX_KEYS", 1)
    assert ran(slots, "a", "b", "b") == ["pool"] * 3
    assert ran(slots, "a") == ["loop"]


def test_the_number_of_requests(slots):
    """A slot is held until the work ends, also if its client has gone."""
    release, started = threading.Event(), threading.Semaphore(0)

    def hold() -> str:
        started.release()
        assert release.wait(20)
        return "held"

    async def run() -> None:
        await slots.run("quick", where)
        tasks = [asyncio.create_task(slots.run(None, hold)) for _ in range(3)]
        await asyncio.sleep(0)
        for _ in range(2):  # the third one waits for a thread
            started.acquire()
        for key in (None, "quick"):  # also one that needs no thread
            with pytest.raises(StatusError, match="more than 3 req") as caught:
                await slots.run(key, where)
            assert caught.value.code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert slots.running == 2
        tasks[0].cancel()  # runs on
        tasks[2].cancel()  # has not begun, and never does
        await asyncio.sleep(0)
        assert await slots.run("quick", where) == "loop"
        waiting = asyncio.create_task(slots.run(None, where))
        await asyncio.sleep(0)
        with pytest.raises(StatusError):
            await slots.run("quick", where)
        release.set()
        assert [await tasks[1], await waiting] == ["held", "pool"]
        wait_until(lambda: slots.running == 0)
        assert not started.acquire(blocking=False)

    asyncio.run(run())


def test_both_protocols_take_turns_in_the_loop():
    """In the order in which they came; one in each pass of the loop."""
    order: list[str] = []
    turns = LoopTurns()

    async def run() -> None:
        with ThreadPoolExecutor(1, "pool") as pool:
            http, grpc = (RequestSlots(pool, 2, turns) for _ in range(2))
            await http.run("a", where)
            await grpc.run("a", where)

            def ask(slots: RequestSlots, name: str) -> asyncio.Task[None]:
                work = slots.run("a", lambda: order.append(name))
                return asyncio.create_task(work)

            tasks = [ask(http, "1"), ask(http, "2"), ask(http, "3")]
            await asyncio.sleep(0)
            assert order == ["1"]
            with pytest.raises(StatusError):  # those that wait count, too
                await http.run("a", where)
            tasks.append(ask(grpc, "4"))
            await asyncio.sleep(0)
            tasks[2].cancel()
            await asyncio.wait(tasks)

    asyncio.run(run())
    assert order == ["1", "2", "4"]
