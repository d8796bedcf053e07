"""Malformed requests over both protocols: no crash, no growth of memory.

The requests are the same for the same seed.
"""

import json
import os
import random
import re
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPException, HTTPResponse
from itertools import islice
from pathlib import Path
from typing import Any

import grpc
import pytest
from tensorflow_serving.apis.get_model_metadata_pb2 import (
    GetModelMetadataRequest,
)
from tensorflow_serving.apis.get_model_status_pb2 import GetModelStatusRequest
from tensorflow_serving.apis.predict_pb2 import PredictRequest

from keras_lstm_dssm.serving import Client, HttpClient, PredictionServer
from keras_lstm_dssm.serving.limits import Bounds
from tests.memory import resident_mb

GRPC_CODES = {"OK", "INVALID_ARGUMENT", "NOT_FOUND", "FAILED_PRECONDITION",
              "OUT_OF_RANGE", "UNIMPLEMENTED", "RESOURCE_EXHAUSTED",
              "INTERNAL"}  # fmt: skip
"""INTERNAL: gRPC's own, for bytes that are no message. An error of ours would
be UNKNOWN."""

HTTP_CODES = {"200", "400", "404", "405", "411", "413", "415", "431", "501",
              "closed"}  # fmt: skip


INPUTS = {"retriever": ["text", "k"], "query_encoder": ["text"],
          "scorer": ["query", "document"], "numbers": ["x"]}  # fmt: skip
MODELS = [*INPUTS] * 4 + ["", "absent", "../x", "é\0", "a" * 3000]
NAMES = ["text", "k", "query", "document", "x", "tags", "", "n", "é" * 99]
SIZES = [0, 1, 2, 3, 512, 513, -1, -(2**63), 2**31, 2**40, 2**62]
NUMBERS = [0, 1, -1, 5, 2**31 - 1, -(2**31), 10**4, 7]
TEXTS = [b"", b"bolt", b"\xff\xfe", b"a\0b", "ß上".encode(), b" " * 5000,
         b"x" * 70_000]  # fmt: skip
METHODS = [
    *["PredictionService/Predict"] * 12,
    *["PredictionService/GetModelMetadata", "ModelService/GetModelStatus"] * 2,
    "PredictionService/Classify", "PredictionService/MultiInference",
    "PredictionService/X", "ModelService/HandleReloadConfigRequest",
]  # fmt: skip


def _predict(rng: random.Random) -> PredictRequest:
    """Returns a request whose parts do not belong together."""
    made = PredictRequest()
    if rng.random() < 0.95:
        made.model_spec.name = rng.choice(MODELS)
    if rng.random() < 0.2:
        made.model_spec.signature_name = rng.choice(
            ["serving_default", "double", "__saved_model_init_op", "é", ""]
        )
    if rng.random() < 0.2:
        made.model_spec.version.value = rng.choice(SIZES)
    elif rng.random() < 0.1:
        made.model_spec.version_label = rng.choice(["canary", "", "\u20ac"])
    names = INPUTS.get(made.model_spec.name, [])
    if not names or rng.random() < 0.3:
        names = rng.sample(NAMES, rng.randint(0, 3))
    for name in names:
        proto = made.inputs[name]
        proto.dtype = rng.choice([1, 3, 7, 7, 7, 9, 10, 0, 20, 21, 99, 101])
        for _ in range(rng.choice([0, 1, 1, 1, 1, 1, 2, 5, 300])):
            proto.tensor_shape.dim.add(size=rng.choice(SIZES))
        proto.tensor_shape.unknown_rank = rng.random() < 0.05
        if rng.random() < 0.8:
            proto.string_val.extend(rng.choices(TEXTS, k=rng.randint(0, 3)))
        if rng.random() < 0.3:
            proto.int_val.extend(rng.choices(NUMBERS, k=rng.randint(0, 3)))
        if rng.random() < 0.3:
            proto.float_val.extend([float("nan"), -1e30][: rng.randint(0, 2)])
        if rng.random() < 0.2:
            proto.tensor_content = rng.randbytes(rng.randint(0, 99))
    if rng.random() < 0.2:
        made.output_filter.extend(rng.choices(["ids", "scores", "", "y"], k=2))
    return made


def _mutated(rng: random.Random, data: bytes) -> bytes:
    """Returns bytes with some of them changed, removed, added or repeated."""
    result = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randint(0, len(result))
        match rng.randint(0, 4):
            case 0:
                del result[at:]
            case 1:
                result[at:at] = rng.randbytes(rng.randint(1, 9))
            case 2:
                result[at : at + 1] = rng.randbytes(1)
            case 3:
                result[at:at] = result[at : at + rng.randint(1, 50)]
            case 4:
                result[at:at] = b"\xff" * rng.randint(1, 12)
    return bytes(result)


def grpc_requests(seed: int) -> Iterator[tuple[str, bytes]]:
    """Yields methods and messages, without an end."""
    rng = random.Random(seed)
    while True:
        method = rng.choice(METHODS)
        message: Any = _predict(rng)
        if "GetModel" in method:
            status = "Status" in method
            plain = message.model_spec
            message = (
                GetModelStatusRequest if status else GetModelMetadataRequest
            )()
            message.model_spec.CopyFrom(plain)
            if not status:
                message.metadata_field.extend(
                    rng.choices(["signature_def", "", "é"], k=rng.randint(0, 2))
                )
        data = message.SerializeToString()
        chance = rng.random()
        if chance < 0.2:
            data = _mutated(rng, data)
        elif chance < 0.25:
            data = rng.randbytes(rng.randint(0, 200))
        yield f"/tensorflow.serving.{method}", data


def _json(rng: random.Random, depth: int = 0) -> Any:
    """Returns a value of JSON, with some of the names that are known."""
    match rng.randint(0, 9 if depth < 4 else 5):
        case 0:
            return rng.choice([None, True, False])
        case 1:
            return rng.choice(NUMBERS + [1.5, 1e300, 2**70, float("nan")])
        case 2 | 3:
            return rng.choice(["", "bolt", "\ud800", "\0", "x" * 70_000, "é"])
        case 4:
            return {"b64": rng.choice(["", "Ym9sdA==", "?", 5, "A"])}
        case 5:
            return []
        case 6 | 7:
            return [_json(rng, depth + 1) for _ in range(rng.randint(0, 4))]
        case _:
            names = ["inputs", "instances", "signature_name", *NAMES]
            chosen = rng.choices(names, k=rng.randint(0, 4))
            return {name: _json(rng, depth + 1) for name in chosen}


def _body(rng: random.Random) -> bytes:
    value = _json(rng)
    if rng.random() < 0.2:  # of the page
        value = {
            "model": rng.choice(MODELS),
            "version": rng.choice([None, 1, *SIZES]),
            "text": rng.choice(["", "bolt", "\ud800", "x" * 70_000, 5]),
            "k": rng.choice([1, 10, None, *NUMBERS]),
            "token": rng.choice(["", "AAAA", "\ud800", None, "é"]),
        }
    if rng.random() < 0.4:
        names = rng.choice([*INPUTS.values()])
        texts = rng.choice([["bolt"], ["a", ""], [{"b64": "/w=="}], [None]])
        value = {"inputs": {name: texts for name in names}}
        value["inputs"] |= {"k": [rng.choice(NUMBERS)] * len(texts)}
        value["inputs"] |= {"x": [rng.choice([*NUMBERS, 0.5, "a"])]}
    elif rng.random() < 0.6:
        key = rng.choice(["inputs", "instances"])
        value = {key: value, "signature_name": rng.choice(["", "double", 3])}
    elif rng.random() < 0.8:
        value = {
            "text": _json(rng), "model": rng.choice([*INPUTS, "", "é\0", None]),
            "k": rng.choice([*NUMBERS, "1", None]), "click": _json(rng),
            "version": rng.choice([None, 1, *SIZES]),
        }  # fmt: skip
    body = json.dumps(value).encode()
    chance = rng.random()
    if chance < 0.2:
        return _mutated(rng, body)
    if chance < 0.25:
        return rng.choice([b"[", b'{"a":']) * rng.choice([10, 9000])
    return body


def _protocol_body(rng: random.Random) -> bytes:
    """Returns a request of OpenAI's or Cohere's protocol, mostly wrong."""
    texts = [["bolt"], ["a", ""], "bolt", [], [{"text": "a"}], ["x" * 70_000]]
    values = {
        "model": rng.choice([*MODELS, None]),
        "input": rng.choice([*texts, _json(rng)]),
        "encoding_format": rng.choice(["float", "base64", None, _json(rng)]),
        "dimensions": rng.choice([None, 2, *NUMBERS]),
        "query": rng.choice(["bolt", "", _json(rng)]),
        "documents": rng.choice([*texts, _json(rng)]),
        "top_n": rng.choice([None, 1, *NUMBERS]),
        "return_documents": rng.choice([None, True, _json(rng)]),
    }
    kept = {key: each for key, each in values.items() if rng.random() < 0.9}
    body = json.dumps(kept).encode()
    return _mutated(rng, body) if rng.random() < 0.1 else body


PATHS = ["/v1/models/{}:predict"] * 6 + [
    "/v1/models/{}", "/v1/models/{}/metadata", "/v1/models/{}/versions/9",
    "/v1/models/{}/versions/99999999999999999999:predict", "/{}",
    "/v1/models/{}/labels/x:predict", "/v1/models/{}:classify", "//{}?x=%zz",
    *["/page/search", "/page/click"] * 3, "/page/models", "/page/{}",
]  # fmt: skip
PROTOCOL_PATHS = ["/v1/embeddings", "/v1/rerank", "/v2/rerank", "/v1/models"]
IN_PATHS = [*INPUTS] * 4 + ["", "%00", "%ff", "..", "%2e%2e%2f", "a" * 3000,
                            ":", "x:predict"]  # fmt: skip


def http_requests(seed: int) -> Iterator[tuple[bytes, bool]]:
    """Yields requests, and whether the server can tell where each one ends."""
    rng = random.Random(seed)
    while True:
        method = rng.choice(
            ["POST"] * 6 + ["GET", "PUT", "HEAD", "OPTIONS", "DELETE", "X"]
        )
        path = rng.choice([*PATHS, *PROTOCOL_PATHS])
        make = _protocol_body if path in PROTOCOL_PATHS else _body
        path, body = path.format(rng.choice(IN_PATHS)), make(rng)
        if method in ("GET", "HEAD") and rng.random() < 0.8:
            body = b""
        lines = [
            f"{method} {path} HTTP/1.1", "host: localhost",
            "content-type: application/json", f"content-length: {len(body)}",
        ]  # fmt: skip
        if rng.random() < 0.1:
            lines.append(rng.choice(["authorization: Bearer \x80",
                                     "content-type: text/plain",
                                     "expect: 100-continue",
                                     "x: " + "y" * 9000]))  # fmt: skip
        if path.startswith("/page/") and rng.random() < 0.9:
            lines.append("content-type: application/json")
        request = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body
        framed = rng.random() < 0.75
        yield (request if framed else _mutated(rng, request)), framed


def send_grpc(target: str, count: int, seed: int) -> Counter[str]:
    """Sends malformed messages, and counts the codes of the replies."""
    codes: Counter[str] = Counter()
    with grpc.insecure_channel(target) as channel:
        for method, data in islice(grpc_requests(seed), count):
            try:
                channel.unary_unary(method)(data, timeout=20)
                codes["OK"] += 1
            except grpc.RpcError as error:
                codes[error.code().name] += 1
    return codes


def send_http(url: str, count: int, seed: int) -> Counter[str]:
    """Sends malformed requests, and counts the codes of the replies."""
    codes: Counter[str] = Counter()
    connection: socket.socket | None = None
    for request, framed in islice(http_requests(seed), count):
        if connection is None:
            port = int(url.rpartition(":")[2])
            connection = socket.create_connection(("127.0.0.1", port), 20)
        closed, code = not framed, "closed"
        try:
            connection.sendall(request)
            if not framed:
                connection.shutdown(socket.SHUT_WR)
            method = request[:4].decode("latin-1").strip()
            reply = HTTPResponse(connection, method=method)
            reply.begin()
            reply.read()
            code = str(reply.status)
            closed |= reply.will_close
        except (HTTPException, OSError):  # the server may have closed
            closed = True
        codes[code] += 1
        if closed:
            connection.close()
            connection = None
    if connection is not None:
        connection.close()
    return codes


def send(
    grpc_target: str, url: str, count: int, seed: int
) -> tuple[Counter[str], Counter[str]]:
    """Sends half of the requests over each protocol, at the same time."""
    with ThreadPoolExecutor(2) as pool:
        by_grpc = pool.submit(send_grpc, grpc_target, count // 2, seed)
        by_http = pool.submit(send_http, url, count // 2, seed)
        return by_grpc.result(), by_http.result()


def check(grpc_target: str, url: str) -> None:
    """The server answers as before."""
    for make, target in ((Client, grpc_target), (HttpClient, url)):
        with make(target, timeout=20) as client:
            (hits,) = client.search(["bolt"], k=1)
            assert hits[0].id == "bolt"


def check_codes(
    by_grpc: "Counter[str]", by_http: "Counter[str]", count: int
) -> None:
    assert by_grpc.keys() <= GRPC_CODES, by_grpc
    assert by_http.keys() <= HTTP_CODES, by_http
    assert by_grpc.total() == by_http.total() == count // 2
    # The requests reach every check, and not only the first one.
    for code in ("OK", "INVALID_ARGUMENT", "NOT_FOUND", "INTERNAL"):
        assert by_grpc[code] > count // 1000, by_grpc
    for code in ("200", "400", "404"):
        assert by_http[code] > count // 1000, by_http


def test_some_hundred_requests(tiny_models):
    with PredictionServer(
        tiny_models, port=0, http_port=0, bounds=Bounds(max_message_mb=1)
    ) as server:
        url = server.http_address
        by_grpc, by_http = send(server.address, url, 800, seed=1)
        check(server.address, url)
    check_codes(by_grpc, by_http, 800)


@contextmanager
def process(models: Path) -> Iterator[tuple[int, str, str]]:
    """Runs the program; yields its number, and its two addresses."""
    program = Path(sys.executable).with_name("lstm-dssm-serve")
    with subprocess.Popen(
        [program, f"--models={models}", "--port=0", "--http_port=0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
    ) as running:
        try:
            assert running.stdout
            url = ""
            for line in running.stdout:
                if match := re.fullmatch(r"HTTP on (\S+)/\n", line):
                    url = match[1]
                if match := re.fullmatch(r"serving on (\S+)\n", line):
                    yield running.pid, match[1], url
                    break
            # It has started, and has not ended by itself.
            assert running.poll() is None
            running.terminate()
            assert running.wait(30) == 0
        finally:
            running.kill()


@pytest.mark.slow
def test_a_hundred_thousand_requests(tiny_models):
    """A server answers malformed requests with errors, and stays as it was.

    Its resident memory after the last fifth of the requests is compared with
    that after the first, when all caches are filled.
    """
    by_grpc: Counter[str] = Counter()
    by_http: Counter[str] = Counter()
    sizes = []
    with process(tiny_models) as (pid, grpc_target, url):
        for part in range(5):
            more = send(grpc_target, url, 20_000, seed=part)
            by_grpc += more[0]
            by_http += more[1]
            sizes.append(resident_mb(pid))
        check(grpc_target, url)
    print(by_grpc, by_http, sizes)
    check_codes(by_grpc, by_http, 100_000)
    # Allocators keep some pages; a kilobyte lost in each request would be 80.
    assert sizes[-1] - sizes[0] < 50, sizes
