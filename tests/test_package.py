"""The plain wheel holds the mapped folders and works without the clone."""

import pathlib
import subprocess
import sys
import zipfile

ROOT = pathlib.Path(__file__).parents[1]


def test_wheel_installs_and_imports(tmp_path: pathlib.Path) -> None:
    pip = [sys.executable, "-m", "pip", "--quiet", "--no-input"]
    options = ["--no-deps", "--no-build-isolation"]
    # From a copy: a build leaves files in the folder that it runs in.
    source = tmp_path / "source"
    subprocess.run(["git", "clone", "--quiet", ROOT, source], check=True)
    subprocess.run(
        [*pip, "wheel", *options, "-w", tmp_path, source], check=True
    )
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    for name in (
        "keras_lstm_dssm/serving/client/grpc_clients.py",
        "keras_lstm_dssm/tools/train.py",
        "keras_lstm_dssm/py.typed",
        "keras_lstm_dssm/html_report/templates/report.html",
        "keras_lstm_dssm/html_report/templates/report.css",
    ):
        assert names.count(name) == 1
    site = tmp_path / "site"
    subprocess.run(
        [*pip, "install", "--no-deps", "--target", site, wheel], check=True
    )
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import keras_lstm_dssm.tools.train as t; print(t.__file__)",
        ],
        env={"PYTHONPATH": str(site), "PATH": ""},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == str(
        site / "keras_lstm_dssm" / "tools" / "train.py"
    )
