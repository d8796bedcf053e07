"""The source distribution is complete, and its wheel works by itself."""

import email
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import zipfile

import pytest
from packaging.requirements import Requirement

ROOT = pathlib.Path(__file__).parents[1]


@pytest.fixture(scope="module")
def sdist(tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("sdist")
    # From a copy: a build leaves files in the folder that it runs in.
    source = folder / "source"
    subprocess.run(["git", "clone", "--quiet", ROOT, source], check=True)
    build = "from setuptools.build_meta import build_sdist; build_sdist('dist')"
    subprocess.run(
        [sys.executable, "-c", build],
        cwd=source,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    (path,) = (source / "dist").glob("*.tar.gz")
    return path


def test_the_source_distribution_holds_what_the_clone_holds(sdist):
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    tracked = subprocess.run(
        ["git", "ls-files"],
        cwd=sdist.parents[1],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\n")[:-1]
    links = ("benchmarks", "export", "tools")  # of the package's folders
    expected = set()
    for name in tracked:
        if name.startswith((".ci/", ".git")) or (ROOT / name).is_symlink():
            continue
        inside = name.partition("/")[0] in links
        expected.add(f"keras_lstm_dssm/{name}" if inside else name)
    assert expected - names == set()
    folders = {str(parent) for n in names for parent in pathlib.Path(n).parents}
    assert {
        name
        for name in names - expected - folders
        if not name.startswith("keras_lstm_dssm.egg-info")
    } == {"", "PKG-INFO", "setup.cfg"}


def test_the_wheel_installs_and_its_programs_start(sdist, tmp_path):
    pip = [sys.executable, "-m", "pip", "--quiet", "--no-input"]
    options = ["--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "wheel", *options, "-w", tmp_path, sdist], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    for name in (
        "lstm_dssm_client/grpc_client.py",
        "lstm_dssm_client/http_client.py",
        "lstm_dssm_client/unicode.json",
        "keras_lstm_dssm/tools/train.py",
        "keras_lstm_dssm/py.typed",
        "keras_lstm_dssm/export/publish/server_readme.md",
        "keras_lstm_dssm/analysis/templates/report.css",
        "keras_lstm_dssm/analysis/templates/report.html",
        "keras_lstm_dssm/serving/page/icon.svg",
        "keras_lstm_dssm/serving/page/index.html",
        "keras_lstm_dssm/serving/page/page.css",
        "keras_lstm_dssm/serving/page/page.js",
        "lstm_dssm_programs.py",
    ):
        assert names.count(name) == 1
    assert not any(name.startswith(("tests", "docs")) for name in names)
    (metadata,) = (name for name in names if name.endswith("/METADATA"))
    fields = email.message_from_bytes(zipfile.ZipFile(wheel).read(metadata))
    assert fields["License-Expression"] == "Apache-2.0"
    assert fields["Requires-Python"] == "<3.14,>=3.10"
    classifiers = fields.get_all("Classifier", [])
    for version in ("3.10", "3.11", "3.12", "3.13"):
        assert f"Programming Language :: Python :: {version}" in classifiers
    extras = fields.get_all("Provides-Extra", [])
    assert {"analysis", "baselines", "dev", "docs", "http"} < set(extras)
    assert fields["Project-URL"] is None
    site = tmp_path / "site"
    subprocess.run(
        [*pip, "install", "--no-deps", "--no-compile", "--target", site, wheel],
        check=True,
    )
    done = subprocess.run(
        [site / "bin" / "lstm-dssm-split", "--help"],
        env={"PYTHONPATH": str(site), "PATH": os.environ["PATH"]},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "lstm-dssm-split --" in done.stdout
    assert done.stderr == ""


def test_the_wheel_of_the_client_alone(sdist, tmp_path):
    """It has the same modules, and works without the others."""
    source = sdist.parents[1]
    pip = [sys.executable, "-m", "pip", "--quiet", "--no-input"]
    options = ["--no-deps", "--no-build-isolation"]
    subprocess.run(
        [*pip, "wheel", *options, "-w", tmp_path, source / "client"], check=True
    )
    (wheel,) = tmp_path.glob("lstm_dssm_client-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = [n for n in archive.namelist() if ".dist-info/" not in n]
        expected = [*(source / "lstm_dssm_client").iterdir()]
        assert sorted(names) == sorted(
            f"lstm_dssm_client/{path.name}" for path in expected
        )
        for path in expected:
            name = f"lstm_dssm_client/{path.name}"
            assert archive.read(name) == path.read_bytes()
    code = (
        "import lstm_dssm_client as c; c.HttpClient('x').close();"
        "from lstm_dssm_client.words import split_words;"
        "print(split_words('É'.encode(), 'space', 9)[0].decode(), c.__file__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(wheel)},  # a wheel is a zip file
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"é {wheel}/lstm_dssm_client/__init__.py\n"


def test_keras_with_holes_in_loading_is_left_out(sdist):
    with tarfile.open(sdist) as archive:
        (name,) = (n for n in archive.getnames() if n.endswith("/requires.txt"))
        file = archive.extractfile(name)
        assert file
        requirements = file.read().decode().splitlines()
    (keras,) = (
        Requirement(r) for r in requirements if re.match("keras[<>=!]", r)
    )
    left_out = ("3.11.3", "3.12.0", "3.12.2", "3.13.0", "3.13.2", "3.14.0",
                "3.14.1", "3.15.0", "3.16.0")  # fmt: skip
    assert not [v for v in left_out if v in keras.specifier]
    pinned = re.findall(
        r"^keras==(\S+?);", (ROOT / "constraints.txt").read_text(), re.M
    )
    assert len(pinned) == 2
    for version in ("3.12.3", *pinned):
        assert version in keras.specifier


def test_the_workflow_tests_the_oldest_and_the_newest_python():
    pyproject = (ROOT / "pyproject.toml").read_text()
    versions = re.findall(r"Python :: (3\.\d+)", pyproject)
    workflow = (ROOT / ".github/workflows/tests.yml").read_text()
    assert f'python: ["{versions[0]}", "{versions[-1]}"]' in workflow
    assert re.findall(r"run: (make \w+)", workflow) == [
        "make lint", "make test", "make docs",
    ]  # fmt: skip
