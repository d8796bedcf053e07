"""The server and the client program, in processes of their own."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from keras_lstm_dssm.export.prediction_service import PredictionServer
from keras_lstm_dssm.tools import serve
from tests.export.tiny_models import save_models

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
