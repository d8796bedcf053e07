"""A server of the tiny models over gRPC and HTTP, for all tests of HTTP."""

import http.client
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from keras_lstm_dssm.serving import PredictionServer
from keras_lstm_dssm.serving.prediction_server import served_over_http


class Served(NamedTuple):
    url: str
    server: PredictionServer
    clicks: Path


@pytest.fixture(scope="session")
def served(
    tiny_models: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    """Runs a server of gRPC and HTTP with the models of `tiny_models`.

    It serves the two newest versions of each, and writes a click log.
    """
    clicks = tmp_path_factory.mktemp("clicks") / "clicks.tsv"
    with (
        PredictionServer(
            tiny_models, port=0, versions=2, metrics=True, max_message_mb=1
        ) as server,
        served_over_http(server, port=0, click_log=clicks) as url,
    ):
        yield Served(url, server, clicks)


Send = Callable[..., tuple[int, Any]]


@pytest.fixture
def send(served: Served) -> Iterator[Send]:
    """Sends a request on one connection; returns its status and its JSON."""
    connection = http.client.HTTPConnection(served.url.split("/")[2])

    def sent(
        method: str, path: str, body: str | bytes = b"", **headers: str
    ) -> tuple[int, Any]:
        connection.request(
            method, path, body.encode() if isinstance(body, str) else body,
            {name.replace("_", "-"): value for name, value in headers.items()},
        )  # fmt: skip
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read())

    yield sent
    connection.close()
