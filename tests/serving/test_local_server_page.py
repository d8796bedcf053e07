"""docs/local_server.md: its commands and its Python run."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from keras_lstm_dssm.serving import PredictionServer
from keras_lstm_dssm.serving.security import Security, ServerTLS, TokenFile
from keras_lstm_dssm.tools import query

PAGE = (Path(__file__).parents[2] / "docs" / "local_server.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def blocks(language: str) -> list[str]:
    return [block for found, block in BLOCKS if found == language]


def test_both_clients_over_grpc(server, capsys):
    code = blocks("python")[0]
    exec(code.replace("127.0.0.1:8500", f"127.0.0.1:{server.port}"), {})
    out = capsys.readouterr().out
    assert "Hit(id='shelf bracket'" in out
    assert "(1, 2)" in out
    assert "{1: VersionStatus(state='AVAILABLE', code='OK'" in out


def test_from_certificates_to_answers(
    tiny_models, tmp_path, monkeypatch, capsys
):
    for program in ("openssl", "curl"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not on this machine")
    monkeypatch.chdir(tmp_path)
    _, make, curl = blocks("sh")
    subprocess.run(["sh", "-ec", make], check=True, capture_output=True)
    security = Security(
        ServerTLS("server.crt", "server.key"), TokenFile("tokens")
    )
    with PredictionServer(
        tiny_models, port=0, http_port=0, security=security
    ) as server:

        def at_ports(code: str) -> str:
            url = server.http_address or ""
            code = code.replace("localhost:8500", f"localhost:{server.port}")
            return code.replace("localhost:8501", f"localhost:{url[-5:]}")

        _, without, with_tls = blocks("python")
        exec(at_ports(with_tls), {})
        assert capsys.readouterr().out.count("Hit(id='bolt', ") == 2
        (command,) = (b for b in blocks("") if "lstm-dssm-query" in b)
        flags = [*at_ports(command).split()[:-1], "bolt"]
        assert query.run([*flags, "--k=1"]) == 0
        assert capsys.readouterr().out == "bolt\n   1   1.0000  bolt\n"
        done = subprocess.run(
            ["sh", "-ec", at_ports(curl)], capture_output=True, text=True
        )
        assert '"state": "AVAILABLE"' in done.stdout, done.stderr
    with PredictionServer(tiny_models, port=0, http_port=0) as server:
        url = server.http_address or ""
        exec(without.replace("http://127.0.0.1:8501", url), {})
    assert "(1, 2)" in capsys.readouterr().out
