"""All clients give the same: over gRPC, with asyncio, and over HTTP."""

import asyncio
import http.server
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Any

import grpc
import numpy as np
import pytest

from lstm_dssm_client import (
    AsyncClient,
    Client,
    ExplainedHit,
    Hit,
    HttpClient,
    InputError,
    ServingError,
    Signature,
    TensorInfo,
    VersionStatus,
)
from lstm_dssm_client.signatures import HYBRID_PARTS
from lstm_dssm_client.text_client import Predict
from tests.client.conftest import run, unit

Code = grpc.StatusCode
Work = Callable[[Any], Any]


@pytest.fixture
def call(clients: tuple[Client, HttpClient]) -> Callable[[Work], Any]:
    """Does a piece of work with each client; returns what all return."""

    def do(work: Work) -> Any:
        by_grpc, by_http = map(work, clients)
        assert_equal(run(clients[0], work), by_grpc)
        assert_equal(by_http, by_grpc)
        return by_grpc

    return do


def assert_equal(found: Any, expected: Any) -> None:
    """Compares replies exactly: values, and the dtypes of arrays."""
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


MANY = ["x" * (1 + number % 9) for number in range(1300)]
# NUL, an emoji, half a surrogate pair (a "?"), bytes not in UTF-8.
ANY = ["a\0b", "\U0001f600", "\ud800", b"\xff\xfe", 'say "x"\\']


@pytest.mark.parametrize(("texts", "version", "want"), [
    (["ab cd", "", "x"], None, [(4, 5), (2, 0), (3, 1)]),
    (["ab cd"], 1, [(3, 5)]),
    (MANY, None, [(3, len(text)) for text in MANY]),  # three requests
    (ANY, None, [(3, 3), (3, 4), (3, 1), (3, 2), (4, 8)]),
], ids=["texts", "version", "many", "bytes"])  # fmt: skip
def test_encode(call, texts, version, want):
    got = call(lambda c: c.encode(texts, version=version))
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, unit(want), rtol=1e-6)


def test_no_texts(call, client, monkeypatch):
    """A request without rows can end a TF Serving that batches."""
    monkeypatch.setitem(client._transport._calls, Predict, None)
    vectors = call(lambda c: c.encode([]))
    assert (vectors.dtype, vectors.shape) == (np.float32, (0, 2))
    assert call(lambda c: c.search([])) == []
    for scores in (call(lambda c: c.score("bolt", [])),
                   call(lambda c: c.score_pairs([], iter([])))):  # fmt: skip
        assert (scores.dtype, scores.shape) == (np.float32, (0,))


def test_search(call):
    titles = {"steel angle": (3, 11), "shelf bracket": (3, 13), "bolt": (2, 4)}
    query = unit((3, 14))
    want = sorted((-unit(n) @ query, title) for title, n in titles.items())
    (hits,) = call(lambda c: c.search(["angle  bracket"], k=2))
    assert isinstance(hits[0], Hit)
    assert hits == [
        (title, pytest.approx(-score), title) for score, title in want[:2]
    ]
    # A k beyond the corpus: the surplus is dropped.
    found = call(lambda c: c.search(["bolt", "", *MANY], k=7))
    assert {len(hits) for hits in found} == {3}
    assert found[0][0] == Hit("bolt", pytest.approx(1.0), "bolt")


def test_explain(call, clients):
    queries = ["bolt", *MANY]
    found = call(lambda c: c.explain(queries, k=7, model="hybrid"))
    hit = found[0][0]
    assert isinstance(hit, ExplainedHit)
    assert hit == ExplainedHit(
        "bolt",
        pytest.approx(1.0),
        {
            **dict.fromkeys(HYBRID_PARTS, 0.0),
            "towers": hit.score / 2,
            "bm25": hit.score / 2,
        },
        {"bm25": {"bolt": 0.25}, "words": {}},
        "bolt",
    )
    plain = call(lambda c: c.search(queries, k=7, model="hybrid"))
    assert [[(*h[:2], h.title) for h in hits] for hits in found] == plain
    assert call(lambda c: c.explain([], model="hybrid")) == []
    tagged = call(
        lambda c: c.explain(queries, 7, "hybrid", tags=["kind:angle"])
    )
    assert [[hit.id for hit in hits] for hits in tagged] == [
        ["steel angle"] for _ in queries
    ]
    assert call(lambda c: c.explain([], 1, "hybrid", tags=["x"])) == []
    for client in clients:
        with pytest.raises(InputError, match="it has no signature explained"):
            client.explain(["bolt"])
        with pytest.raises(InputError, match="no document has: .* kind:angle,"):
            client.explain(["bolt"], model="hybrid", tags=["kind:angel"])


def test_score(call):
    """`Scorer` subtracts a document's length from twice the query's."""
    scores = call(lambda c: c.score("bolt", iter(["a", "", *ANY])))
    want = [7, 8, 5, 4, 7, 6, 0]
    assert (scores.dtype, scores.tolist()) == (np.float32, want)
    scores = call(lambda c: c.score("é", MANY, version=1))  # three requests
    assert scores.tolist() == [4 - len(text) for text in MANY]
    scores = call(lambda c: c.score_pairs(MANY, MANY[::-1]))
    wanted = zip(map(len, MANY), map(len, MANY[::-1]), strict=True)
    assert scores.tolist() == [2 * query - title for query, title in wanted]


def test_many_callers_at_once(clients):
    """64 requests by 16 threads, or by one with asyncio."""
    texts = [["x" * size] for size in range(1, 65)]
    client, http_client = clients

    async def gathered(connected: AsyncClient) -> list[np.ndarray]:
        return await asyncio.gather(*map(connected.encode, texts))

    with ThreadPoolExecutor(16) as pool:
        found = [[*pool.map(each.encode, texts)] for each in clients]
    want = unit([[[3, len(text)]] for (text,) in texts])
    for vectors in (*found, run(client, gathered)):
        np.testing.assert_allclose(vectors, want, rtol=1e-6)
    assert 1 <= len(http_client._transport._idle) <= 17


def test_signatures(call):
    text, k = TensorInfo("string", (None,)), TensorInfo("int32", (None,))
    ids = TensorInfo("string", (None, None))
    scores = TensorInfo("float32", (None, None))
    assert call(lambda c: c.signatures("retriever")) == {
        "serving_default": Signature(
            {"k": k, "text": text}, {"ids": ids, "scores": scores}
        )
    }


def test_status(call):
    available = VersionStatus("AVAILABLE", "OK", "")
    both = {2: available, 1: available}
    assert call(lambda c: c.status("query_encoder")) == both
    assert call(lambda c: c.status("retriever")) == {1: available}


@pytest.mark.parametrize(("options", "signature", "outputs"), [
    ({"signature": "double"}, "double", {"y": [3.0, -4.0]}),
    ({"outputs": ["bool", "string", "int8"]}, "serving_default",
     {"bool": [True, False], "string": [b"1", b"-2"], "int8": [1, -2]}),
])  # fmt: skip
def test_predict(call, client, options, signature, outputs):
    x = {"x": np.float32([1.5, -2])}
    found = call(lambda c: c.predict("numbers", x, version=1, **options))
    assert found[:3] == ("numbers", 1, signature)
    assert {name: y.tolist() for name, y in found.outputs.items()} == outputs
    # Over gRPC the reply names the version, too.
    assert client.predict("numbers", x, **options)[:3] == found[:3]


@pytest.mark.parametrize(("work", "code", "by_grpc", "by_http"), [
    (lambda c: c.encode(["x"], model="absent"), Code.NOT_FOUND,
     r"absent: NOT_FOUND: .*Latest\(absent\); check the model's name",
     r"absent: 404 Not Found: .*Latest\(absent\); check the model's name"),
    (lambda c: c.encode(["x"], model="numbers"), Code.INVALID_ARGUMENT,
     "model numbers: .*alias: x.feed name.*signatures. lists the",
     "model numbers: .*signatures. lists the"),
    (lambda c: c.score("x", ["y"], model="retriever"),
     Code.INVALID_ARGUMENT,
     "model retriever: .*Inputs expected .* request {document,query}, ",
     "model retriever: .*signatures. lists the"),
    (lambda c: c.encode(["x"], version=9), Code.NOT_FOUND,
     r"Specific\(query_encoder, 9\); check the model's name and version",
     r"Specific\(query_encoder, 9\); check the model's name and version"),
    (lambda c: c.encode(["x"], version="canary"), Code.INVALID_ARGUMENT,
     "INVALID_ARGUMENT: Unrecognized servable version label: canary",
     "400 Bad Request: .*label: canary; .*signatures. lists the inputs"),
    (lambda c: c.predict("numbers", {"x": np.ones(1)}, signature="z"),
     Code.FAILED_PRECONDITION,
     'Serving signature key "z" not found.; the client.s method .signatu',
     '"z" not found.*; the client.s method .signatu'),
    (lambda c: c.search(["x"], tags=["steel"]), Code.FAILED_PRECONDITION,
     '"filtered" not found', '"filtered" not found'),
    (lambda c: c.search(["x"] * 512, k=1_000_001), Code.INVALID_ARGUMENT,
     "k is 1000001, more than the 1000000 that this server allows",
     "k is 1000001, more than the 1000000 that this server allows"),
])  # fmt: skip
def test_refusals_are_one_line(clients, work, code, by_grpc, by_http):
    by_name = {
        Code.INVALID_ARGUMENT: HTTPStatus.BAD_REQUEST,
        Code.FAILED_PRECONDITION: HTTPStatus.BAD_REQUEST,
        Code.NOT_FOUND: HTTPStatus.NOT_FOUND,
    }
    client, http_client = clients
    for ask, expected, message in (
        (lambda: work(client), code, by_grpc),
        (lambda: run(client, work), code, by_grpc),
        (lambda: work(http_client), by_name[code], by_http),
    ):
        with pytest.raises(ServingError, match=message) as caught:
            ask()
        assert caught.value.code is expected
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("work", "message"), [
    (lambda c: c.encode("one text"), "got one text, 'one text'"),
    (lambda c: c.encode(["x"], version=-1), "version is -1; expected a"),
    (lambda c: c.encode(["x"], version=2**63), "a number from 0, below 2..63"),
    (lambda c: c.search(["x"], k=0), "k is 0; expected a whole number from 1"),
    (lambda c: c.search(["x"], k=2.0), "k is 2.0; .* a whole number"),
    (lambda c: c.search(["x"], k=True), "k is True; .* a whole number"),
    (lambda c: c.search(["x"], k="2"), "k is 2; .* a whole number"),
    (lambda c: c.search(["x"], k=2**31), r"below 2\*\*31"),
    (lambda c: c.score(["x"], ["y"]), r"query is \['x'\] .list., expected"),
    (lambda c: c.score("x", "y"), "got one text, 'y'"),
    (lambda c: c.score("x", [1]), "text 0 is 1 .int., expected str or"),
    (lambda c: c.score_pairs(["x"], []), "found 1 queries and 0 documents"),
    (lambda c: c.encode([], model="numbers"), "s: its signature .* has no"),
    (lambda c: c.encode([], model="scorer"), "no output embedding"),
    (lambda c: c.predict("numbers", {"x": np.zeros(0, np.float32)}),
     "input 'x' has no rows"),
    (lambda c: c.predict("numbers", {"x": np.int64([1])}),
     r"numbers: input 'x' is int64 \(1,\), expected float32 \(None,\)"),
    (lambda c: c.predict("numbers", {"x": np.ones([1, 2], np.float32)}),
     r"input 'x' is float32 \(1, 2\), expected float32 \(None,\)"),
    (lambda c: c.predict("numbers", {"x": np.float32(1)}),
     r"input 'x' is float32 \(\), expected float32 \(None,\)"),
    (lambda c: c.predict("numbers", {"x": np.array([1 + 2j])}),
     "input 'x' is complex128 .1,., expected float32 .None"),
    (lambda c: c.predict("scorer", {"query": np.array([object()], object)}),
     "input 'query'(:| has <object object at) .*; expected an array of "
     "numbers, or of bytes for strings"),
])  # fmt: skip
def test_wrong_arguments(clients, work, message):
    client, http_client = clients
    for ask in (
        lambda: work(client),
        lambda: run(client, work),
        lambda: work(http_client),
    ):
        with pytest.raises(InputError, match=message):
            ask()


@pytest.mark.parametrize("new", [Client, HttpClient])
def test_numbers_out_of_range(new):
    for value in (0, -1.0, 1e9, 1e30, float("inf"), float("nan")):
        with pytest.raises(InputError, match="expected seconds above 0, 86,40"):
            new("127.0.0.1:1", timeout=value)
    for value in (0, 2048):
        with pytest.raises(InputError, match="expected 1 to 2047"):
            new("127.0.0.1:1", max_message_mb=value)


def test_the_http_port_for_the_grpc_client():
    handler = http.server.SimpleHTTPRequestHandler
    with http.server.HTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"127.0.0.1:{server.server_port}"
        with Client(address, timeout=10.0) as client:
            with pytest.raises(OSError, match="may be a server.s HTTP port"):
                client.encode(["x"])
        server.shutdown()


@pytest.mark.parametrize(
    ("new", "options"), [(Client, {}), (HttpClient, {"timeout": 0.3})]
)
def test_no_server(new, options):
    with socket.create_server(("127.0.0.1", 0)) as unused:
        address = f"127.0.0.1:{unused.getsockname()[1]}"
    with new(address, **options) as client:
        with pytest.raises(OSError, match=f"no answer from {address}: start"):
            client.encode(["x"])
