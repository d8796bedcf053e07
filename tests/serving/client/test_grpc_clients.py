"""Both clients, with the local server."""

import asyncio
import pickle
import socket
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.serving import (
    AsyncClient,
    Client,
    Hit,
    PredictionServer,
    ServingError,
    VersionStatus,
)

Code = grpc.StatusCode


def run(client: Client, work: Callable[[AsyncClient], Awaitable[Any]]) -> Any:
    """Does the same work with an asyncio client of the same server."""

    async def main() -> Any:
        async with AsyncClient(client.target, timeout=20) as connected:
            return await work(connected)

    return asyncio.run(main())


def unit(*values: float) -> list[float]:
    return list(np.array(values) / np.linalg.norm(values))


def test_encode(client: Client) -> None:
    got = client.encode(["ab cd", "", "x"])
    assert got.dtype == np.float32
    np.testing.assert_allclose(
        got, [unit(4, 5), unit(2, 0), unit(3, 1)], rtol=1e-6
    )


def test_encode_with_a_version(client: Client) -> None:
    got = client.encode(["ab cd"], version=1)
    np.testing.assert_allclose(got, [unit(3, 5)], rtol=1e-6)


def test_no_texts(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request without rows can end a TF Serving that batches."""
    monkeypatch.setitem(client._methods, "Predict", None)
    for vectors in (client.encode([]), run(client, lambda c: c.encode([]))):
        assert vectors.dtype == np.float32
        assert vectors.shape == (0, 2)
    assert client.search([]) == run(client, lambda c: c.search([])) == []
    with pytest.raises(InputError, match="numbers: its signature .* has no"):
        client.encode([], model="numbers")
    with pytest.raises(InputError, match="input 'x' has no rows"):
        client.predict("numbers", {"x": np.zeros(0, np.float32)})


def test_more_texts_than_one_request_holds(client: Client) -> None:
    texts = ["x" * (1 + number % 9) for number in range(1300)]
    got = client.encode(texts)
    want = [unit(3, len(text)) for text in texts]
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_many_callers_at_once(client: Client) -> None:
    texts = [["x" * size] for size in range(1, 65)]
    with ThreadPoolExecutor(16) as pool:
        got = list(pool.map(client.encode, texts))
    want = [[unit(3, len(text))] for (text,) in texts]
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_any_string_can_be_sent(client: Client) -> None:
    # NUL, an emoji, half a surrogate pair (a "?"), bytes that are not UTF-8.
    got = client.encode(["a\0b", "\N{GRINNING FACE}", "\ud800", b"\xff\xfe"])
    want = [unit(3, 3), unit(3, 4), unit(3, 1), unit(3, 2)]
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_a_reply_above_grpcs_own_limit(client: Client) -> None:
    # 9 bytes a hit, 512 texts, 1,000 columns: 4.5 MiB.
    inputs = {
        "text": np.array([b"bolt"] * 512, object),
        "k": np.full(512, 1000, np.int32),
    }
    prediction = client.predict("retriever", inputs)
    assert prediction.outputs["scores"].shape == (512, 1000)


def test_texts_of_more_bytes_than_one_message_holds(client: Client) -> None:
    texts = ["x" * 4096] * 512 + ["x" * (1 << 19)]
    with Client(client.target, timeout=20, max_message_mb=1) as small:
        got = small.encode(texts)
    want = [unit(3, len(text)) for text in texts]
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_search(client: Client) -> None:
    titles = {"steel angle": (3, 11), "shelf bracket": (3, 13), "bolt": (2, 4)}
    query = unit(3, 14)
    want = sorted(
        (-float(np.dot(unit(*counts), query)), title)
        for title, counts in titles.items()
    )
    (hits,) = client.search(["angle  bracket"], k=2)
    assert [hit.id for hit in hits] == [title for _, title in want[:2]]
    np.testing.assert_allclose(
        [hit.score for hit in hits], [-score for score, _ in want[:2]], 1e-6
    )
    assert isinstance(hits[0], Hit)


def test_search_beyond_the_corpus_drops_the_surplus(client: Client) -> None:
    hits_of_queries = client.search(["bolt", "angle bracket"], k=7)
    assert [len(hits) for hits in hits_of_queries] == [3, 3]
    assert hits_of_queries[0][0] == Hit("bolt", pytest.approx(1.0))


def test_signatures(client: Client) -> None:
    (name,) = client.signatures("retriever")
    assert name == "serving_default"
    inputs, outputs = client.signatures("retriever")[name]
    assert {key: spec.dtype.name for key, spec in inputs.items()} == {
        "k": "int32",
        "text": "string",
    }
    assert inputs["text"].shape.as_list() == [None]
    assert {key: spec.dtype.name for key, spec in outputs.items()} == {
        "ids": "string",
        "scores": "float32",
    }


def test_status(client: Client) -> None:
    available = VersionStatus("AVAILABLE", "OK", "")
    assert client.status("query_encoder") == {2: available, 1: available}
    assert client.status("retriever") == {1: available}


def test_a_refusal_names_code_and_model(client: Client) -> None:
    with pytest.raises(ServingError) as caught:
        client.encode(["x"], model="absent")
    assert caught.value.code is grpc.StatusCode.NOT_FOUND
    assert caught.value.model == "absent"
    assert "Latest(absent)" in caught.value.details
    assert str(caught.value) == (
        f"{client.target}, model absent: NOT_FOUND: "
        "Servable not found for request: Latest(absent); check the model's "
        "name and version; `lstm-dssm-query --status` lists the versions"
    )


def test_a_refusal_passes_between_processes(client: Client) -> None:
    with pytest.raises(ServingError) as caught:
        client.encode(["x"], model="absent")
    passed = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(passed, ServingError)
    assert str(passed) == str(caught.value)
    assert vars(passed) == vars(caught.value)
    assert passed.code is Code.NOT_FOUND


def test_predict(client: Client) -> None:
    x = np.float32([1.5, 2])
    prediction = client.predict("numbers", {"x": x}, signature="double")
    assert prediction[:3] == ("numbers", 1, "double")
    assert {name: y.tolist() for name, y in prediction.outputs.items()} == {
        "y": [3.0, 4.0]
    }
    prediction = client.predict(
        "numbers", {"x": x}, ["bool", "string"], version=1
    )
    assert {name: y.tolist() for name, y in prediction.outputs.items()} == {
        "bool": [True, True],
        "string": [b"1", b"2"],
    }


@pytest.mark.parametrize(
    ("call", "code", "message"),
    [
        (
            lambda c: c.encode(["x"], model="numbers"),
            Code.INVALID_ARGUMENT,
            "model numbers: .*alias: x.feed name.*signatures. returns the",
        ),
        (
            lambda c: c.encode(["x"], version=9),
            Code.NOT_FOUND,
            r"Specific\(query_encoder, 9\); check the model's name and version",
        ),
        (
            lambda c: c.encode(["x"], version="canary"),
            Code.INVALID_ARGUMENT,
            "Unrecognized servable version label: canary",
        ),
        (
            lambda c: c.predict("numbers", {"x": np.ones(1)}, signature="z"),
            Code.FAILED_PRECONDITION,
            'Serving signature key "z" not found.; .Client.signatures. retu',
        ),
    ],
)
def test_refusals_are_one_line(
    client: Client, call: Callable[[Client], Any], code: Any, message: str
) -> None:
    with pytest.raises(ServingError, match=message) as caught:
        call(client)
    assert caught.value.code is code
    assert "\n" not in str(caught.value)


def test_a_reply_above_the_clients_limit(client: Client) -> None:
    with (
        Client(client.target, max_message_mb=1) as small,
        pytest.raises(ServingError, match="raise max_message_mb"),
    ):
        small.search(["bolt"], k=300_000)


def test_an_encoder_that_is_none(tmp_path: Path) -> None:
    module = tf.Module()
    module.serve = tf.function(
        lambda text: {"embedding": tf.strings.length(text)},
        input_signature=[tf.TensorSpec([None], tf.string, "text")],
    )
    tf.saved_model.save(module, str(tmp_path / "lengths/1"), module.serve)
    with (
        PredictionServer(tmp_path, port=0) as server,
        Client(f"127.0.0.1:{server.port}") as other,
        pytest.raises(
            InputError,
            match=r"lengths: its output embedding is int32 \[2\], expected "
            r"float32 \[2, any\]",
        ),
    ):
        other.encode(["a", "b"], model="lengths")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: c.encode("one text"), "got one text, 'one text'"),
        (
            lambda c: c.predict("numbers", {"x": np.int64([1])}),
            r"numbers: input 'x' is int64 \(1,\), expected float32 \(None,\)",
        ),
        (
            lambda c: c.predict("numbers", {"x": np.ones([1, 2], np.float32)}),
            r"input 'x' is float32 \(1, 2\), expected float32 \(None,\)",
        ),
        (
            lambda c: c.predict("numbers", {"x": np.float32(1)}),
            r"input 'x' is float32 \(\), expected float32 \(None,\)",
        ),
    ],
)
def test_wrong_arguments(
    client: Client, call: Callable[[Client], Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        call(client)


def test_no_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    with (
        Client(f"127.0.0.1:{port}") as client,
        pytest.raises(OSError, match=f"no answer from 127.0.0.1:{port}: start"),
    ):
        client.encode(["x"])


def test_async_encode(client: Client) -> None:
    texts = ["x" * (1 + number % 9) for number in range(1300)]
    got = run(client, lambda c: c.encode(texts, version=1))
    np.testing.assert_array_equal(got, client.encode(texts, version=1))


@pytest.mark.parametrize(
    "work",
    [
        lambda c: c.search(["bolt", "angle bracket"], k=2),
        lambda c: c.status("query_encoder"),
        lambda c: c.signatures("retriever"),
    ],
)
def test_async_methods(client: Client, work: Callable[[Any], Any]) -> None:
    assert run(client, work) == work(client)


def test_async_predict(client: Client) -> None:
    x = np.float32([1, 2])
    prediction = run(
        client, lambda c: c.predict("numbers", {"x": x}, ["int32"])
    )
    assert prediction[:3] == ("numbers", 1, "serving_default")
    assert {n: v.tolist() for n, v in prediction.outputs.items()} == {
        "int32": [1, 2]
    }


def test_async_many_at_once(client: Client) -> None:
    texts = [["x" * size] for size in range(1, 65)]

    async def work(connected: AsyncClient) -> list[np.ndarray]:
        return await asyncio.gather(*map(connected.encode, texts))

    for text, vector in zip(texts, run(client, work), strict=True):
        np.testing.assert_array_equal(vector, client.encode(text))


def test_async_errors(client: Client) -> None:
    with pytest.raises(ServingError, match="model absent: NOT_FOUND") as caught:
        run(client, lambda c: c.encode(["x"], model="absent"))
    assert caught.value.code is grpc.StatusCode.NOT_FOUND
    with pytest.raises(InputError, match="k is 0"):
        run(client, lambda c: c.search(["x"], k=0))


def test_async_deadline() -> None:
    async def main(target: str) -> None:
        async with AsyncClient(target, timeout=0.2) as client:
            await client.encode(["x"])

    with socket.create_server(("127.0.0.1", 0)) as silent:
        target = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(ServingError, match="DEADLINE_EXCEEDED"):
            asyncio.run(main(target))
