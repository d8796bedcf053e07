"""The server and the client program, in processes of their own."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.serving.client.grpc_clients import Client
from keras_lstm_dssm.serving.server.prediction_server import PredictionServer
from keras_lstm_dssm.tools import serve
from tests.serving.tiny_models import save_encoder, save_models

BIN = Path(sys.executable).parent


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_models(tmp_path_factory.mktemp("models"))


@pytest.fixture
def process(models: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [BIN / "lstm-dssm-serve", f"--models={models}", "--port=0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        try:
            yield running
        finally:
            running.kill()


def test_serve_query_and_stop(
    process: subprocess.Popen[str], tmp_path: Path
) -> None:
    assert process.stdout
    lines = [process.stdout.readline() for _ in range(4)]
    assert lines[:3] == [
        "numbers version 1\n",
        "query_encoder version 2\n",
        "retriever version 1\n",
    ]
    address = re.fullmatch(r"serving on (127\.0\.0\.1:\d+)\n", lines[3])
    assert address
    answer = tmp_path / "answer.json"
    asked = subprocess.run(
        [
            BIN / "lstm-dssm-query",
            f"--server={address[1]}",
            "--k=1",
            f"--json={answer}",
            "bolt",
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert asked.returncode == 0
    assert asked.stdout == "bolt\n   1   1.0000  bolt\n"
    (hit,) = json.loads(answer.read_text())["queries"][0]["hits"]
    assert hit == {"id": "bolt", "score": pytest.approx(1.0)}
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0


class Countdown(tf.Module):
    """A model that takes as long as it is told."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
    def count(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        (y,) = tf.while_loop(lambda y: y[0] > 0, lambda y: (y - 1,), [x])
        return {"y": y}


def count(client: Client, steps: float) -> list[float]:
    found = client.predict("countdown", {"x": np.float32([steps])})
    return found.outputs["y"].tolist()


def test_the_end_comes_after_what_is_in_flight(tmp_path: Path) -> None:
    module = Countdown()
    tf.saved_model.save(module, str(tmp_path / "countdown/1"), module.count)
    with (
        subprocess.Popen(
            [BIN / "lstm-dssm-serve", f"--models={tmp_path}", "--port=0"],
            stdout=subprocess.PIPE,
            text=True,
        ) as running,
        ThreadPoolExecutor(1) as pool,
    ):
        try:
            assert running.stdout
            assert running.stdout.readline() == "countdown version 1\n"
            target = running.stdout.readline().split()[-1]
            with Client(target, timeout=30) as client:
                count(client, 1)  # the first run is slow
                start = time.monotonic()
                count(client, 1e4)
                steps = round(1.5e4 / (time.monotonic() - start))
                slow = pool.submit(count, client, steps)  # for 1.5 seconds
                time.sleep(0.3)
                running.send_signal(signal.SIGINT)
                time.sleep(0.3)
                assert not slow.done()
                with (
                    Client(target) as late,
                    pytest.raises(OSError, match="no answer from"),
                ):
                    late.status("countdown")
                assert slow.result() == [0.0]
            assert running.wait(20) == 0
        finally:
            running.kill()


def test_versions_exported_while_it_runs_are_served(tmp_path: Path) -> None:
    base = tmp_path / "query_encoder"
    save_encoder(base, offset=1.0)
    with subprocess.Popen(
        [BIN / "lstm-dssm-serve", f"--models={tmp_path}", "--port=0",
         "--poll_seconds=0.05"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
    ) as running:  # fmt: skip
        try:
            assert running.stdout and running.stderr
            assert running.stdout.readline() == "query_encoder version 1\n"
            target = running.stdout.readline().split()[-1]
            save_encoder(base, offset=2.0)
            told = [running.stderr.readline() for _ in range(2)]
            with Client(target) as client:
                states = client.status("query_encoder")
        finally:
            running.kill()
    assert told[0].startswith("query_encoder version 2: available after ")
    assert told[1] == "query_encoder version 1: unloaded\n"
    assert {v: status.state for v, status in states.items()} == {
        2: "AVAILABLE",
        1: "END",
    }


def test_sigint_while_loading(
    models: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # A signal that comes before the server is up must not be lost.
    class Interrupted(PredictionServer):
        def __init__(self, *args: object, **options: object) -> None:
            signal.raise_signal(signal.SIGINT)
            super().__init__(*args, **options)

    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(serve, "PredictionServer", Interrupted)
    assert serve.run(["serve", f"--models={models}", "--port=0"]) == 0
    assert "serving on 127.0.0.1:" in capsys.readouterr().out
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--models=absent"], "error: absent: no such folder;"),
        (["--models=."], "error: .: no model in this folder;"),
        ([], "--models"),
        (["--models=.", "--port=65536"], "65535"),
        (["--models=.", "--host="], "--host is missing"),
        (["--models=.", "--poll_seconds=nan"], "poll_seconds is nan; expected"),
        (["--models=.", "--grace_seconds=inf"], "grace_seconds is inf; expec"),
    ],
)
def test_wrong_input(
    flags: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert serve.run(["serve", *flags]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.count("\n") == 1


def test_a_port_in_use(
    models: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with PredictionServer(models, port=0) as server:
        flags = [f"--models={models}", f"--port={server.port}"]
        assert serve.run(["serve", *flags]) == 1
    err = capsys.readouterr().err
    assert err.startswith(f"error: cannot listen on 127.0.0.1:{server.port}: ")
    assert err.count("\n") == 1
