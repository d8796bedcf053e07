"""The clients import neither TensorFlow, nor anything else that is large."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import keras_lstm_dssm as dssm
import lstm_dssm_client
from keras_lstm_dssm import serving
from keras_lstm_dssm.export import Documents, export_portable

ROOT = Path(__file__).parents[2]
TITLES = ["hex bolt", "wood glue"]
NO_SERVER = """
import sys
import lstm_dssm_client
client = lstm_dssm_client.{name}("{address}", timeout=0.05)
try:
    client.search(["bolt"], tags=["steel"])
except lstm_dssm_client.ServingError as error:
    print(error.code is None, getattr(error.code, "name", ""))
"""
LOCAL = """
import sys
sys.modules["tensorflow"] = None
from lstm_dssm_client import LocalModel
model = LocalModel(sys.argv[1])
print(sorted(hit.id for hit in model.search(["Straße bolt"], k=2)[0]))
"""
NAMES = """
print(sorted({name.split(".")[0] for name in sys.modules}))
"""
PROGRAM = """
import sys
sys.modules["tensorflow"] = None
import lstm_dssm_programs
sys.argv[:] = ["lstm-dssm-search", f"--models={sys.argv[1]}", "--k=2", "bolt"]
try:
    lstm_dssm_programs.search()
except SystemExit as end:
    print(end.code, "keras_lstm_dssm.public" in sys.modules)
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> str:
    """A portable file of two titles."""
    path = str(tmp_path_factory.mktemp("portable") / "shop.safetensors")
    model = dssm.build_model("lstm_32")
    export_portable(model, path, Documents(TITLES, TITLES))
    return path


def run(code: str, path: str, **options: object) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", code, path], cwd=ROOT, capture_output=True,
        text=True, **options,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize(("code", "printed", "packages"), [
    (NO_SERVER.format(name="HttpClient", address="http://127.0.0.1:1"),
     {"True "}, set()),
    (NO_SERVER.format(name="Client", address="127.0.0.1:1"),
     {"False UNAVAILABLE", "False DEADLINE_EXCEEDED"},
     {"grpc", "grpc_health", "google", "typing_extensions"}),
    (LOCAL, {str(TITLES)}, {"safetensors", "tensorflow"}),
], ids=["http", "grpc", "local"])  # fmt: skip
def test_a_fresh_process_stays_small(code, printed, packages, path):
    """`tensorflow` is a name that stands for None."""
    # `make coverage` would measure the process, too, and be imported in it.
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("COVERAGE_")
    }
    line, modules = run(code + NAMES, path, env=environment)
    assert line in printed
    names = set(eval(modules)) - sys.stdlib_module_names
    assert {"lstm_dssm_client", "numpy"} <= names
    # What an editable installation and `site` add; NumPy 1's modules in
    # Cython share `cython_runtime`.
    usual = ("_", "sitecustomize", "dist", "cython_runtime")
    others = {name for name in names if not name.startswith(usual)}
    assert others - packages <= {"lstm_dssm_client", "numpy"}


def test_the_program_that_searches_a_file_never_runs_the_init(path):
    query, *found, end = run(PROGRAM, path)
    assert (query, end) == ("bolt", "0 False")
    assert sorted(line.split(maxsplit=2)[2] for line in found) == TITLES


def test_the_same_classes():
    assert dssm.InputError is lstm_dssm_client.InputError
    for name in ("HttpClient", "Hit", "KeyParts", "ServingError"):
        assert getattr(serving, name) is getattr(lstm_dssm_client, name)


def test_names_are_imported_when_they_are_asked_for(monkeypatch):
    from lstm_dssm_client.grpc_client import Client

    assert lstm_dssm_client.Client is Client
    assert set(lstm_dssm_client.__all__) <= set(dir(lstm_dssm_client))
    for name in lstm_dssm_client.__all__:
        assert getattr(lstm_dssm_client, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute Server"):
        lstm_dssm_client.Server  # noqa: B018
    for name, package, extra in (
        ("grpc_client", "grpc", "grpc"),
        ("portable_file", "safetensors", "local"),
    ):
        with monkeypatch.context() as patch:
            for module in (name, "local_model", "local_encoder"):
                found = f"lstm_dssm_client.{module}"
                patch.delitem(sys.modules, found, raising=False)
            patch.setitem(sys.modules, package, None)
            wanted = "Client" if extra == "grpc" else "LocalModel"
            with pytest.raises(ImportError) as error:
                getattr(lstm_dssm_client, wanted)
        assert str(error.value) == (
            f"{wanted} needs {package}, which is not installed: pip install "
            f'"lstm-dssm-client[{extra}]"'
        )
