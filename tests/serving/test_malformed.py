"""Malformed requests over both protocols: no crash, no growth of memory."""

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from keras_lstm_dssm.serving import Client, HttpClient, PredictionServer
from keras_lstm_dssm.serving.limits import Bounds
from tests.memory import resident_mb
from tests.serving.malformed import GrpcSender, HttpSender

GRPC_CODES = {"OK", "INVALID_ARGUMENT", "NOT_FOUND", "FAILED_PRECONDITION",
              "OUT_OF_RANGE", "UNIMPLEMENTED", "RESOURCE_EXHAUSTED",
              "INTERNAL"}  # fmt: skip
"""INTERNAL: gRPC's own, for bytes that are no message. An error of ours would
be UNKNOWN."""

HTTP_CODES = {"200", "400", "404", "405", "411", "413", "415", "431", "501",
              "closed"}  # fmt: skip


def send(
    grpc_target: str, url: str, count: int, seed: int
) -> tuple["Counter[str]", "Counter[str]"]:
    """Sends half of the requests over each protocol, at the same time."""
    with (
        closing(GrpcSender(grpc_target, seed)) as by_grpc,
        closing(HttpSender(urlsplit(url).port or 0, seed)) as by_http,
        ThreadPoolExecutor(2) as pool,
    ):
        sent = [
            pool.submit(each.send, count // 2) for each in (by_grpc, by_http)
        ]
        return sent[0].result(), sent[1].result()


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
        url = server.http_address or ""
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
