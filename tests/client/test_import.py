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


LOCAL = """
import sys
sys.modules["tensorflow"] = None
from lstm_dssm_client import LocalModel
model = LocalModel(sys.argv[1])
print([hit.id for hit in model.search(["Straße bolt"], k=2)[0]])
print(sorted({name.split(".")[0] for name in sys.modules}))
"""

PROGRAM = """
import sys
sys.modules["tensorflow"] = None
import lstm_dssm_programs
sys.argv[:] = ["lstm-dssm-search", f"--models={sys.argv[1]}", "--k=2", "bolt"]
code = lstm_dssm_programs.start("search")
print(code, hasattr(sys.modules["keras_lstm_dssm"], "__all__"))
"""


def run(code: str, *arguments: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_a_file_is_searched_without_tensorflow(tmp_path):
    """By the client, and by the program, which never runs the `__init__`."""
    import keras_lstm_dssm as dssm
    from keras_lstm_dssm.export import Documents, export_portable

    path = str(tmp_path / "shop.safetensors")
    titles = ["hex bolt", "wood glue"]
    model = dssm.TwoTower.from_preset("lstm_32")
    export_portable(model, path, Documents(titles, titles))
    hits, modules = run(LOCAL, path)
    assert sorted(eval(hits)) == titles
    names = set(eval(modules)) - sys.stdlib_module_names
    others = {n for n in names if not n.startswith(("_", "sitecustomize"))}
    assert {n for n in others if not n.startswith(("__editable", "dist"))} <= {
        *("lstm_dssm_client", "numpy", "safetensors", "cython_runtime"),
        *("distutils_hack", "tensorflow"),
    }, others
    query, *found, end = run(PROGRAM, path)
    assert (query, end) == ("bolt", "0 False")
    assert sorted(line.split(maxsplit=2)[2] for line in found) == titles


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
    for name, package, extra in (
        ("grpc_client", "grpc", "grpc"),
        ("portable_file", "safetensors", "local"),
    ):
        with monkeypatch.context() as patch:
            for module in (name, "local_model", "local_encoder"):
                patch.delitem(
                    sys.modules, f"lstm_dssm_client.{module}", raising=False
                )
            patch.setitem(sys.modules, package, None)
            wanted = "Client" if extra == "grpc" else "LocalModel"
            with pytest.raises(ImportError) as error:
                getattr(lstm_dssm_client, wanted)
        assert str(error.value) == (
            f"{package} is not installed, which {wanted} needs: pip install "
            f'"lstm-dssm-client[{extra}]"'
        )
