"""The server's program, once in a process of its own."""

import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.serving import Client, PredictionServer, prediction_server
from keras_lstm_dssm.tools import search, serve
from tests.serving.tiny_models import save_encoder

PROGRAM = Path(sys.executable).with_name("lstm-dssm-serve")


class Countdown(tf.Module):
    """Counts down to 0, so that a large input keeps the server busy."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
    def count(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        (y,) = tf.while_loop(lambda y: y[0] > 0, lambda y: (y - 1,), [x])
        return {"y": y}


def count(client: Client, steps: float) -> list[float]:
    prediction = client.predict("countdown", {"x": np.float32([steps])})
    return prediction.outputs["y"].tolist()


def test_serve_swap_and_stop(tiny_models, tmp_path, capfd):
    """Starts a server, publishes a version, and ends it by a signal."""
    encoder, module = tmp_path / "query_encoder", Countdown()
    tf.saved_model.save(module, str(tmp_path / "countdown/1"), module.count)
    save_encoder(encoder, offset=1.0)
    (tmp_path / "retriever").symlink_to(tiny_models / "retriever")
    with (
        subprocess.Popen(
            [PROGRAM, f"--models={tmp_path}", "--port=0", "--http_port=0",
             "--poll_seconds=0.05",
             f"--click_log=ubi:{tmp_path / 'log'}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        ) as process,
        ThreadPoolExecutor(1) as pool,
    ):  # fmt: skip
        try:
            assert process.stdout and process.stderr
            lines = [process.stdout.readline() for _ in range(5)]
            assert lines[:3] == [
                "countdown version 1\n",
                "query_encoder version 1\n",
                "retriever version 1\n",
            ]
            url = re.fullmatch(r"HTTP on (http://127.0.0.1:\d+/)\n", lines[3])
            assert url
            with urllib.request.urlopen(f"{url[1]}v1/models/retriever") as got:
                assert b'"state": "AVAILABLE"' in got.read()
            address = re.fullmatch(r"serving on (127\.0\.0\.1:\d+)\n", lines[4])
            assert address
            target = address[1]
            flags = [f"--server={target}", "--k=1"]
            capfd.readouterr()
            assert search.program.run(["search", *flags, "bolt"]) == 0
            assert capfd.readouterr().out == "bolt\n   1   1.0000  bolt\n"

            save_encoder(encoder, offset=2.0)
            logged = [process.stderr.readline() for _ in range(2)]
            assert re.match(
                r"query_encoder version 2: loaded after ", logged[0]
            )
            assert logged[1] == "query_encoder version 1: unloaded\n"

            with Client(target, timeout=30) as client:
                states = client.status("query_encoder").items()
                assert {
                    version: status.state for version, status in states
                } == {2: "AVAILABLE", 1: "END"}
                count(client, 1)  # the first run is slow
                start = time.monotonic()
                count(client, 1e4)
                steps = round(1.5e4 / (time.monotonic() - start))
                slow = pool.submit(count, client, steps)  # for 1.5 seconds
                time.sleep(0.3)
                process.send_signal(signal.SIGTERM)
                time.sleep(0.3)
                assert not slow.done()
                with (
                    Client(target) as late,
                    pytest.raises(OSError, match="no answer from"),
                ):
                    late.status("countdown")
                assert slow.result() == [0.0]
            assert process.wait(20) == 0
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_loading(tiny_models, monkeypatch, capsys, number):
    # A signal that comes before the server is up must not be lost.
    class Interrupted(PredictionServer):
        def __init__(self, *args: object, **options: object) -> None:
            signal.raise_signal(number)
            super().__init__(*args, **options)

    before = signal.getsignal(number)
    monkeypatch.setattr(prediction_server, "PredictionServer", Interrupted)
    assert (
        serve.program.run(["serve", f"--models={tiny_models}", "--port=0"]) == 0
    )
    assert "serving on 127.0.0.1:" in capsys.readouterr().out
    assert signal.getsignal(number) is before
