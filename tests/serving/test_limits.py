"""Bounds on requests, each with its code, and how many may run and where."""

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import grpc
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework.tensor_pb2 import TensorProto
from tensorflow_serving.apis.predict_pb2 import PredictRequest

from keras_lstm_dssm import serving
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.serving.limits import Bounds, LoopTurns, RequestSlots
from keras_lstm_dssm.serving.servable import Servable, StatusError
from tests.serving.waiting import wait_until

BOUNDS = Bounds(max_rows=3, max_text_kb=1, max_k=5, max_message_mb=1)


def proto(values: object, packed: bool = False, **shape: int) -> TensorProto:
    """Returns a message, with its values in the one or the other field."""
    made = tf.make_tensor_proto(values)
    if packed:
        array = tf.make_ndarray(made)
        content = tf.io.serialize_tensor(tf.constant(array)).numpy()
        made = TensorProto.FromString(content)
        assert made.tensor_content or not array.size
    for index, size in enumerate(shape.values()):
        made.tensor_shape.dim[index].size = size
    return made


def request(**inputs: TensorProto) -> PredictRequest:
    made = PredictRequest()
    for name, value in inputs.items():
        made.inputs[name].CopyFrom(value)
    return made


TASK = "Task size 4 is larger than maximum"
TEXT = "input text has a text of 1,025 bytes, more than the 1,024 that"


@pytest.mark.parametrize(("inputs", "message"), [
    ({"text": proto([b"x" * 1024] * 3)}, None),
    ({"text": proto([[b"x" * 1024] * 999] * 3)}, None),
    ({"text": proto([], a=0)}, None),
    ({"x": proto(np.float32(7))}, None),
    ({"x": proto(np.zeros([3, 1 << 16], np.float32), packed=True)}, None),
    ({"text": proto([b"x"], a=-1)}, None),  # parsing reports it
    ({}, None),
    ({"text": proto([b"x"] * 4)}, TASK),
    ({"text": proto([b"x"], a=4)}, TASK),
    ({"x": proto(np.float32([[1]]), a=3, b=1 << 20)},
     "input x is a tensor of 3,145,728 elements, more than fit into th"),
    ({"x": proto([[b"x" * 1000]], a=3, b=1000)},
     "input x is a tensor of 3,000 elements, more than fit"),
    ({"y": proto([[b""]], a=3, b=1 << 40)}, "input y is a tensor of 3,298"),
    # The same as arrays, when the messages have been parsed.
    ({"text": [b"x" * 1024] * 3, "k": np.int32([1, 5, 0])}, None),
    ({"k": np.int32([-9]), "other": np.int32([9])}, None),
    ({"text": [], "k": np.int32(5)}, None),
    ({"text": [b"x"] * 4}, TASK),
    ({"text": [b"", b"x" * 1025]}, TEXT),
    ({"k": np.int32([1, 6])}, "k is 6, more than the 5 that this"),
    ({"n": np.int64([6])}, "n is 6, more than the 5"),
])  # fmt: skip
def test_requests_within_the_bounds_and_above(inputs, message):
    if all(isinstance(each, TensorProto) for each in inputs.values()):
        check = partial(BOUNDS.check, request(**inputs))
    else:
        arrays = {
            name: np.array(v, object) if isinstance(v, list) else np.asarray(v)
            for name, v in inputs.items()
        }
        check = partial(BOUNDS.check_arrays, arrays)
    if message is None:
        check()
        return
    with pytest.raises(StatusError, match=message) as caught:
        check()
    assert caught.value.code is grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize(("content", "message"), [
    # The lengths of texts as varints, and then the texts.
    (b"\x81\x08" + b"x" * 1025, "input text has a text of 1,025 bytes"),
    (b"\0" * (1 << 20), "tensor parsing error: text"),
    (b"\xff" * 20, "tensor parsing error: text"),
])  # fmt: skip
def test_texts_in_tensor_content(tiny_models, content, message):
    servable = Servable("any", 1, tiny_models / "query_encoder/1")
    made = request(text=proto([b""]))
    made.inputs["text"].ClearField("string_val")
    made.inputs["text"].tensor_content = content
    BOUNDS.check(made)
    with pytest.raises(StatusError, match=message):
        servable.predict(made, BOUNDS.check_arrays)
    made.inputs["text"].tensor_content = b"\x80\x08" + b"x" * 1024
    assert servable.predict(made, BOUNDS.check_arrays).outputs


@pytest.mark.parametrize(("name", "value", "expected"), [
    *[(name, 0, "2,147,483,647") for name in ("max_k", "max_rows")],
    *[("max_message_mb", value, "2,047") for value in (0, 2048)],
    *[(name, 0, "2") for name in ("max_text_kb", "max_requests")],
    ("max_k", 1 << 31, "2"),
])  # fmt: skip
def test_numbers_out_of_range(name, value, expected):
    message = f"{name} is {value}: expected a whole number from 1 to {expected}"
    with pytest.raises(InputError, match=message):
        Bounds(**{name: value})


@pytest.fixture
def clients(
    tiny_models: Path, tmp_path
) -> Iterator[tuple[serving.Client, serving.HttpClient]]:
    """Clients of a server of narrow bounds, two requests at a time."""
    (tmp_path / "retriever").symlink_to(tiny_models / "retriever")
    bounds = replace(BOUNDS, max_requests=2)
    with (
        serving.PredictionServer(
            tmp_path, port=0, http_port=0, bounds=bounds
        ) as server,
        serving.Client(server.address, timeout=20) as client,
        serving.HttpClient(server.http_address, timeout=20) as http_client,
    ):
        yield client, http_client


def test_both_protocols(clients):
    code = grpc.StatusCode
    by_grpc = (code.INVALID_ARGUMENT, code.RESOURCE_EXHAUSTED)
    for client, codes in zip(clients, (by_grpc, (400, 413)), strict=True):
        for work, message, expected in (
            (lambda c: c.search(["x"] * 4), "Task size 4", codes[0]),
            (lambda c: c.search(["x" * 1025]), "1,025 bytes", codes[0]),
            (lambda c: c.search(["x"], k=6), "k is 6, more", codes[0]),
            (lambda c: c.search(["x" * (1 << 20)]), "larger than", codes[1]),
        ):
            with pytest.raises(serving.ServingError, match=message) as caught:
                work(client)
            assert caught.value.code == expected
        assert client.search(["bolt"], k=1)[0][0].id == "bolt"


@pytest.mark.parametrize(("number", "method", "code"), [
    (0, "predict", grpc.StatusCode.RESOURCE_EXHAUSTED),
    (1, "signature", 429),
], ids=["grpc", "http"])  # fmt: skip
def test_no_queue_without_an_end(clients, monkeypatch, number, method, code):
    client = clients[number]
    client.signatures("retriever")  # is not asked for again
    release, running = threading.Event(), []
    original = getattr(Servable, method)

    def hold(*arguments: object) -> object:
        running.append(1)
        assert release.wait(20)
        return original(*arguments)

    monkeypatch.setattr(Servable, method, hold)
    with ThreadPoolExecutor(2) as pool:
        answers = [pool.submit(client.search, ["bolt"]) for _ in range(2)]
        wait_until(lambda: len(running) == 2)
        try:
            with (
                type(client)(client.target, timeout=0.2) as short,
                pytest.raises(serving.ServingError, match="busy") as caught,
            ):
                short.status("retriever")
            assert caught.value.code == code
        finally:
            release.set()
        assert {answer.result()[0][0].id for answer in answers} == {"bolt"}
    assert list(client.status("retriever")) == [1]


@pytest.fixture
def sure_of_quick(monkeypatch) -> None:
    """Raises the time limit of quick requests, as the machine may be busy."""
    monkeypatch.setattr(serving.limits, "QUICK_SECONDS", 0.25)


@pytest.fixture
def slots(sure_of_quick) -> Iterator[RequestSlots]:
    with ThreadPoolExecutor(2, "pool") as pool:
        yield RequestSlots(pool, 3, LoopTurns())


def where() -> str:
    """Names the thread that calls it: `pool` for one of the pool, or `loop`."""
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
    monkeypatch.setattr(serving.limits, "QUICK_SECONDS", -1.0)
    monkeypatch.setattr(serving.limits, "_SLOW_FACTOR", -1e9)
    assert ran(slots, "a", "a") == ["loop", "pool"]
    monkeypatch.setattr(serving.limits, "QUICK_SECONDS", 0.25)
    assert ran(slots, "a", "a") == ["pool", "loop"]
    # One that was very slow is in a thread for a while.
    monkeypatch.setattr(serving.limits, "QUICK_SECONDS", -1.0)
    monkeypatch.setattr(serving.limits, "_SLOW_FACTOR", 1)
    monkeypatch.setattr(serving.limits, "_SLOW_SECONDS", 0.5)
    assert ran(slots, "a") == ["loop"]
    monkeypatch.setattr(serving.limits, "_SLOW_FACTOR", -1e9)
    assert ran(slots, "a") == ["pool"]  # slower, but not very slow
    monkeypatch.setattr(serving.limits, "QUICK_SECONDS", 0.25)
    assert ran(slots, "a", "a") == ["pool", "pool"]
    time.sleep(0.5)
    assert ran(slots, "a") == ["loop"]


def test_errors_do_not_make_a_key_quick(slots):
    async def run() -> None:
        for _ in range(2):
            with pytest.raises(ValueError):
                await slots.run("a", fail)

    asyncio.run(run())
    assert ran(slots, "a", "a") == ["pool", "loop"]


def test_the_keys_that_are_remembered_are_bounded(slots, monkeypatch):
    monkeypatch.setattr(serving.limits, "_MAX_KEYS", 1)
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


def test_both_protocols_take_turns_in_the_loop(sure_of_quick):
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
