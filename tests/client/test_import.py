"""The client does not import TensorFlow, nor anything else that is large."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

CODE = """
import sys
import lstm_dssm_client
client = lstm_dssm_client.HttpClient("http://127.0.0.1:1", timeout=0.05)
try:
    client.search(["bolt"], tags=["steel"])
except lstm_dssm_client.ServingError as error:
    print(error.code)
print(sorted({name.split(".")[0] for name in sys.modules}))
"""


def test_a_fresh_process_stays_small():
    # `make coverage` would measure the process, too, and be imported in it.
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("COVERAGE_")
    }
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    code, modules = done.stdout.splitlines()
    assert code == "None"
    names = set(eval(modules))
    assert {"lstm_dssm_client", "numpy"} <= names
    others = names - {"lstm_dssm_client", "numpy"} - sys.stdlib_module_names
    # What an editable installation and `site` add.
    others = {n for n in others if not n.startswith(("_", "sitecustomize"))}
    assert not others & {"keras", "keras_lstm_dssm", "tensorflow", "grpc"}
    # NumPy 1's modules in Cython share `cython_runtime`.
    assert {n for n in others if not n.startswith(("__editable", "dist"))} <= {
        "cython_runtime",
        "distutils_hack",
    }, others


def test_the_same_classes():
    import keras_lstm_dssm as dssm
    import lstm_dssm_client
    from keras_lstm_dssm import serving

    assert dssm.InputError is lstm_dssm_client.InputError
    for name in ("HttpClient", "Hit", "KeyParts", "ServingError"):
        assert getattr(serving, name) is getattr(lstm_dssm_client, name)


def test_names_are_imported_when_they_are_asked_for(monkeypatch):
    import lstm_dssm_client
    from lstm_dssm_client.grpc_client import Client

    assert lstm_dssm_client.Client is Client
    assert set(lstm_dssm_client.__all__) <= set(dir(lstm_dssm_client))
    for name in lstm_dssm_client.__all__:
        assert getattr(lstm_dssm_client, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute Server"):
        lstm_dssm_client.Server  # noqa: B018
    monkeypatch.delitem(sys.modules, "lstm_dssm_client.grpc_client")
    monkeypatch.setitem(sys.modules, "grpc", None)
    with pytest.raises(ImportError, match=r"grpc is not installed, which Cli"):
        lstm_dssm_client.Client  # noqa: B018
