"""Malformed requests over gRPC and HTTP, the same for the same seed."""

import json
import random
import socket
from collections import Counter
from collections.abc import Iterator
from http.client import HTTPException, HTTPResponse
from typing import Any

import grpc
from tensorflow_serving.apis.get_model_metadata_pb2 import (
    GetModelMetadataRequest,
)
from tensorflow_serving.apis.get_model_status_pb2 import GetModelStatusRequest
from tensorflow_serving.apis.predict_pb2 import PredictRequest

INPUTS = {
    "retriever": ["text", "k"],
    "query_encoder": ["text"],
    "scorer": ["query", "document"],
    "numbers": ["x"],
}
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
            "text": _json(rng),
            "model": rng.choice([*INPUTS, "", "é\0", None]),
            "k": rng.choice([*NUMBERS, "1", None]),
            "version": rng.choice([None, 1, *SIZES]),
            "click": _json(rng),
        }
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
            f"{method} {path} HTTP/1.1",
            "host: localhost",
            "content-type: application/json",
            f"content-length: {len(body)}",
        ]
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


class GrpcSender:
    """Sends malformed messages, and counts the codes of the replies."""

    def __init__(self, target: str, seed: int) -> None:
        self._channel = grpc.insecure_channel(target)
        self._requests = grpc_requests(seed)

    def send(self, count: int) -> "Counter[str]":
        codes: Counter[str] = Counter()
        for _ in range(count):
            method, data = next(self._requests)
            try:
                self._channel.unary_unary(method)(data, timeout=20)
                codes["OK"] += 1
            except grpc.RpcError as error:
                codes[error.code().name] += 1
        return codes

    def close(self) -> None:
        self._channel.close()


class HttpSender:
    """Sends malformed requests, and counts the codes of the replies."""

    def __init__(self, port: int, seed: int) -> None:
        self._port = port
        self._requests = http_requests(seed)
        self._socket: socket.socket | None = None

    def send(self, count: int) -> "Counter[str]":
        codes: Counter[str] = Counter()
        for _ in range(count):
            request, framed = next(self._requests)
            codes[self._code(request, framed)] += 1
        return codes

    def _code(self, request: bytes, framed: bool) -> str:
        if self._socket is None:
            self._socket = socket.create_connection(
                ("127.0.0.1", self._port), timeout=20
            )
        closed, code = not framed, "closed"
        try:
            self._socket.sendall(request)
            if not framed:
                self._socket.shutdown(socket.SHUT_WR)
            reply = HTTPResponse(
                self._socket, method=request[:4].decode("latin-1").strip()
            )
            reply.begin()
            reply.read()
            code = str(reply.status)
            closed |= reply.will_close
        except (HTTPException, ConnectionError):
            closed = True
        if closed:
            self.close()
        return code

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
