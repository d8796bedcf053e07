"""HttpClient returns what Client returns, from the same server."""

from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Any

import numpy as np
import pytest

from lstm_dssm_client import HttpClient, InputError, ServingError, TensorInfo

MANY = ["x" * (1 + number % 9) for number in range(1300)]
ANY = ["ab cd", "", "a\0b", "\U0001f600", "\ud800", b"\xff\xfe", 'say "x"\\']


@pytest.mark.parametrize(
    "work",
    [
        lambda c: c.encode(ANY),
        lambda c: c.encode(MANY),  # three requests
        lambda c: c.encode(["x"], version=1),
        lambda c: c.encode([]),
        lambda c: c.search(["angle bracket", "bolt", ""], k=2),
        lambda c: c.search(MANY, k=7),
        lambda c: c.search([]),
        lambda c: c.score("bolt", ANY),
        lambda c: c.score("é", MANY, version=1),
        lambda c: c.score_pairs(MANY, MANY[::-1]),
        lambda c: c.score("bolt", []),
        lambda c: c.status("query_encoder"),
        lambda c: c.status("retriever"),
        lambda c: c.predict("scorer", {
            "query": np.array([b"ab"], object),
            "document": np.array([b"c"], object)}).outputs,
        lambda c: c.predict(
            "numbers", {"x": np.float32([1.5, -2])}, ["string", "int8"],
            version=1,
        ),
        lambda c: c.predict(
            "numbers", {"x": np.float32([1])}, version=1, signature="double"
        ),
    ],
)  # fmt: skip
def test_the_same_as_over_grpc(clients: tuple, work: Any) -> None:
    by_grpc, by_http = map(work, clients)
    assert_equal(by_http, by_grpc)


def assert_equal(found: Any, expected: Any) -> None:
    """Exactly: also the dtypes of arrays."""
    assert type(found) is type(expected)
    if isinstance(expected, np.ndarray):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        assert found.tolist() == expected.tolist()
    elif isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key in expected:
            assert_equal(found[key], expected[key])
    elif isinstance(expected, tuple):
        for each in zip(found, expected, strict=True):
            assert_equal(*each)
    else:
        assert found == expected


def test_signatures(clients: tuple) -> None:
    signatures = clients[1].signatures("retriever")
    assert list(signatures) == ["serving_default"]
    assert signatures["serving_default"] == (
        {"k": TensorInfo("int32", (None,)),
         "text": TensorInfo("string", (None,))},
        {"ids": TensorInfo("string", (None, None)),
         "scores": TensorInfo("float32", (None, None))},
    )  # fmt: skip


def test_many_threads_share_connections(clients: tuple) -> None:
    client = clients[1]
    texts = [["x" * size] for size in range(1, 65)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(client.encode, texts))
    expected = [clients[0].encode(text) for text in texts]
    np.testing.assert_array_equal(found, expected)
    assert 1 <= len(client._connection._idle) <= 9


@pytest.mark.parametrize(
    ("work", "code", "message"),
    [
        (
            lambda c: c.encode(["x"], model="absent"),
            HTTPStatus.NOT_FOUND,
            r"model absent: 404 Not Found: .*Latest\(absent\); check the model",
        ),
        (
            lambda c: c.encode(["x"], version="canary"),
            HTTPStatus.BAD_REQUEST,
            "400 Bad Request: .*label: canary; .*signatures. returns the model",
        ),
        (
            lambda c: c.encode(["x"], model="a/b c"),
            HTTPStatus.NOT_FOUND,
            "model a/b c: ",
        ),
        (
            lambda c: c.search(["x"], tags=["steel"]),
            HTTPStatus.BAD_REQUEST,
            '"filtered" not found',
        ),
        (
            lambda c: c.search(["x"] * 512, k=1_000_001),
            HTTPStatus.BAD_REQUEST,
            "k is 1000001, more than the 1000000 that this server allows",
        ),
    ],
)
def test_refusals_are_one_line(
    clients: tuple, work: Any, code: HTTPStatus, message: str
) -> None:
    with pytest.raises(ServingError, match=message) as caught:
        work(clients[1])
    assert caught.value.code is code
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (lambda c: c.encode("one text"), "got one text, 'one text'"),
        (lambda c: c.search(["x"], k=0), "k is 0"),
        (
            lambda c: c.encode(["x"], version=-1),
            "version is -1; expected a",
        ),
        (
            lambda c: c.predict("numbers", {"x": np.zeros(0, np.float32)}),
            "input 'x' has no rows",
        ),
        (
            lambda c: c.predict("numbers", {"x": np.int64([1])}),
            r"numbers: input 'x' is int64 \(1,\), expected float32 \(None,\)",
        ),
        (
            lambda c: c.predict("numbers", {"x": np.ones([1, 2], np.float32)}),
            r"input 'x' is float32 \(1, 2\), expected float32 \(None,\)",
        ),
        (
            lambda c: c.predict("numbers", {"x": np.array([1 + 2j])}),
            "input 'x' is complex128; expected an array of numbers",
        ),
        (
            lambda c: c.predict("scorer", {"query": np.array([1], object)}),
            "input 'query' has 1; expected",
        ),
        (lambda c: c.encode([], model="scorer"), "no output embedding"),
    ],
)
def test_wrong_arguments(clients: tuple, work: Any, message: str) -> None:
    with pytest.raises((InputError, ServingError), match=message):
        work(clients[1])


@pytest.mark.parametrize(
    "target",
    ["", "ftp://x", "http://", "http://x:y", "http://a:b@c", "http://x/?q",
     "http://[::1"],
)  # fmt: skip
def test_wrong_addresses(target: str) -> None:
    with pytest.raises(InputError, match="expected the address of a server"):
        HttpClient(target)


def test_wrong_numbers() -> None:
    for value in (0, -1.0, float("nan"), 1e9):
        with pytest.raises(InputError, match="expected seconds above 0"):
            HttpClient("x", timeout=value)
    with pytest.raises(InputError, match="expected 1 to 2047"):
        HttpClient("x", max_message_mb=0)
