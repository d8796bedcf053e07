"""release/check_tf_serving.py with our server, and a stand-in for Docker."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from keras_lstm_dssm.serving import PredictionServer
from tests.test_docs import load


@pytest.fixture
def check() -> ModuleType:
    return load("check_tf_serving", "release")


@pytest.fixture
def models(tiny_models, tmp_path) -> Path:
    """Returns a folder of two encoders, which a text maps to one vector."""
    for name in ("query_encoder", "document_encoder"):
        (tmp_path / "models" / name).mkdir(parents=True)
        (tmp_path / "models" / name / "1").symlink_to(
            tiny_models / "query_encoder" / "1"
        )
    (tmp_path / "titles.txt").write_text("hex bolt\n" * 90 + "wood glue\n")
    return tmp_path / "models"


@pytest.fixture
def address(models) -> Iterator[str]:
    with PredictionServer(models, port=0) as server:
        yield f"127.0.0.1:{server.port}"


def run(check: ModuleType, models: Path, *flags: str) -> int:
    return check.main([str(models), str(models.parent / "titles.txt"), *flags])


def test_equal_and_other_embeddings(
    check, models, address, tiny_models, tmp_path, capsys
):
    assert run(check, models, f"--server={address}") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(", at most")[0] for line in lines] == [
        f"{name} version 1: 96 texts, largest difference 0.0e+00"
        for name in ("query_encoder", "document_encoder")
    ]
    # The folder has another training than the server.
    other = tmp_path / "other" / "document_encoder" / "1"
    other.parent.mkdir(parents=True)
    other.symlink_to(tiny_models / "query_encoder" / "2")
    (tmp_path / "other" / "query_encoder").symlink_to(models / "query_encoder")
    assert run(check, tmp_path / "other", f"--server={address}") == 1
    query, document = capsys.readouterr().out.splitlines()
    assert "difference 0.0e+00" in query
    assert "difference 0.0e+00" not in document


def test_the_container_is_started_on_the_models_and_removed(
    check, models, address, tmp_path, monkeypatch, capsys
):
    log = tmp_path / "log"
    docker = tmp_path / "bin" / "docker"
    docker.parent.mkdir()
    docker.write_text(
        f'#!/bin/sh\necho "$@" >> {log}\n'
        f"case $1 in run) echo 5f3c;; port) echo {address};; esac\n"
    )
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", str(docker.parent), prepend=":")
    assert run(check, models) == 0
    started, port, removed = log.read_text().splitlines()
    assert port == "port 5f3c 8500/tcp" and removed == "rm --force 5f3c"
    _, *options = shlex.split(started)
    assert f"--volume={models}:/models:ro" in options
    place = options.index("tensorflow/serving:2.20.0")
    assert options[place + 1] == "--model_config_file=/models/models.config"
    log.unlink()
    # A server that does not start: its log is printed, and it is removed.
    docker.write_text(docker.read_text().replace(address, "127.0.0.1:1"))
    with pytest.raises(SystemExit, match="error: query_encoder after 0 s: "):
        run(check, models, "--seconds=0")
    commands = [line.split()[0] for line in log.read_text().splitlines()]
    assert commands == ["run", "port", "logs", "rm"]


def test_without_docker(check, models, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match="docker is not installed"):
        run(check, models)
