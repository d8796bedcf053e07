"""The source distribution is complete, and its wheels work by themselves."""

import ast
import email
import os
import re
import stat
import subprocess
import sys
import tarfile
import venv
import zipfile
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[1]
PIP = [sys.executable, "-m", "pip", "--quiet", "--no-input"]
WHEEL = [*PIP, "wheel", "--no-deps", "--no-build-isolation", "-w"]


def printed(*command: object, **options: Any) -> str:
    """Runs a command in a process; returns what it prints."""
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def imported_modules(path: Path) -> set[str]:
    """Returns the top-level modules that a file imports, anywhere in it."""
    modules = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            modules |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules.add(node.module)
        elif isinstance(node, ast.Call) and isinstance(
            node.args and node.args[0], ast.Constant
        ):
            if getattr(node.func, "id", None) == "import_optional":
                modules.add(node.args[0].value)
    return {module.partition(".")[0] for module in modules}


def test_each_imported_package_is_declared():
    """Also those that another declared package happens to require."""
    imported: set[str] = set()
    for folder in ("keras_lstm_dssm", "export", "tools", "lstm_dssm_client"):
        for path in ROOT.joinpath(folder).rglob("*.py"):
            imported |= imported_modules(path)
    own = {"keras_lstm_dssm", "lstm_dssm_client", "lstm_dssm_programs"}
    names = metadata.packages_distributions()
    tomllib = pytest.importorskip("tomllib")  # Python 3.10 has none
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    declared = {
        re.sub(r"[-_.]+", "-", Requirement(line).name).lower()
        for line in chain(project["dependencies"], *extras)
    }
    undeclared = {
        module
        for module in imported - own - sys.stdlib_module_names
        if not declared
        & {
            re.sub(r"[-_.]+", "-", name).lower()
            for name in names.get(module, [module])
        }
    }
    assert undeclared == set()
    assert {"grpc", "h11", "google"} < imported


@pytest.fixture(scope="module")
def sdist(tmp_path_factory) -> Path:
    # From a copy: a build leaves files in the folder that it runs in.
    source = tmp_path_factory.mktemp("sdist") / "source"
    printed("git", "clone", "--quiet", ROOT, source)
    build = "from setuptools.build_meta import build_sdist; build_sdist('dist')"
    printed(sys.executable, "-c", build, cwd=source)
    (path,) = (source / "dist").glob("*.tar.gz")
    return path


def test_the_source_distribution_holds_what_the_clone_holds(sdist):
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    tracked = printed("git", "ls-files", cwd=sdist.parents[1]).splitlines()
    links = ("export", "tools")  # of the package's folders
    expected = set()
    for name in tracked:
        if name.startswith((".ci/", ".git")) or (ROOT / name).is_symlink():
            continue
        inside = name.partition("/")[0] in links
        expected.add(f"keras_lstm_dssm/{name}" if inside else name)
    assert expected - names == set()
    folders = {str(parent) for n in names for parent in Path(n).parents}
    assert {
        name
        for name in names - expected - folders
        if not name.startswith("keras_lstm_dssm.egg-info")
    } == {"", "PKG-INFO", "setup.cfg"}


def test_the_wheel_installs_and_its_programs_start(sdist, tmp_path):
    printed(*WHEEL, tmp_path, sdist)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    for name in (
        "lstm_dssm_client/grpc_client.py",
        "lstm_dssm_client/http_client.py",
        "lstm_dssm_client/unicode_tables.py",
        "keras_lstm_dssm/tools/train.py",
        "keras_lstm_dssm/py.typed",
        "keras_lstm_dssm/templates/card.jinja",
        "keras_lstm_dssm/templates/report.css",
        "keras_lstm_dssm/templates/report.html.jinja",
        "keras_lstm_dssm/serving/page/icon.svg",
        "keras_lstm_dssm/serving/page/index.html",
        "keras_lstm_dssm/serving/page/page.css",
        "keras_lstm_dssm/serving/page/page.js",
        "lstm_dssm_programs.py",
    ):
        assert names.count(name) == 1
    of_the_clone = ("benchmarks", "docs", "tests")
    assert not any(name.startswith(of_the_clone) for name in names)
    assert not any("benchmark" in name for name in names)
    (metadata,) = (name for name in names if name.endswith("/METADATA"))
    fields = email.message_from_bytes(zipfile.ZipFile(wheel).read(metadata))
    assert fields["Project-URL"] is None
    site = tmp_path / "site"
    install = [*PIP, "install", "--no-deps", "--no-compile", "--target", site]
    printed(*install, wheel)
    help_text = printed(
        *(site / "bin" / "lstm-dssm-prepare", "--help"),
        env={"PYTHONPATH": str(site), "PATH": os.environ["PATH"]},
        cwd=tmp_path,
    )
    assert "lstm-dssm-prepare --" in help_text


def test_the_wheel_of_the_client_alone(sdist, tmp_path):
    """It has the same modules, and works without the others."""
    source = sdist.parents[1]
    printed(*WHEEL, tmp_path, source / "client")
    (wheel,) = tmp_path.glob("lstm_dssm_client-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        found = {
            name: archive.read(name)
            for name in archive.namelist()
            if ".dist-info/" not in name
        }
    assert found == {
        f"lstm_dssm_client/{path.name}": path.read_bytes()
        for path in (source / "lstm_dssm_client").iterdir()
    }
    code = (
        "import lstm_dssm_client as c; c.HttpClient('x').close();"
        "from lstm_dssm_client.words import split_words;"
        "print(split_words('É', 'space')[0], c.__file__)"
    )
    path = {"PYTHONPATH": str(wheel)}  # a wheel is a zip file
    lines = printed(sys.executable, "-c", code, env=path, cwd=tmp_path)
    assert lines == f"é {wheel}/lstm_dssm_client/__init__.py\n"


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


def test_pins_allow_each_supported_python():
    """What an installed package of the pinned version says of Python."""
    pyproject = (ROOT / "pyproject.toml").read_text()
    versions = re.findall(r"Python :: (3\.\d+)", pyproject)
    assert versions == ["3.10", "3.11", "3.12", "3.13"]
    compared, refused = 0, []
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        pin = Requirement(line)
        try:
            package = metadata.metadata(pin.name)
        except metadata.PackageNotFoundError:
            continue
        if package["Version"] not in pin.specifier:
            continue  # the pin of another Python
        compared += 1
        allowed = SpecifierSet(package.get("Requires-Python", ""))
        for version in versions:
            here = {"python_version": version}
            if pin.marker is None or pin.marker.evaluate(here):
                # The bounds of packages name minor versions, not patches.
                if f"{version}.20" not in allowed:
                    refused.append(f"{line}: not on {version}")
    assert compared > 50 and not refused


def test_the_workflow_tests_the_oldest_and_the_newest_python():
    pyproject = (ROOT / "pyproject.toml").read_text()
    versions = re.findall(r"Python :: (3\.\d+)", pyproject)
    workflow = (ROOT / ".github/workflows/tests.yml").read_text()
    assert f'python: ["{versions[0]}", "{versions[-1]}"]' in workflow
    assert re.findall(r"run: (make \w+)", workflow) == [
        "make lint", "make test", "make docs", "make demo",
    ]  # fmt: skip


def test_the_umask_of_who_builds_does_not_matter(tmp_path):
    """Wheels hold the modes of files that setuptools has just written."""
    code = (
        "import sys; sys.path.insert(0, 'release'); import make_dist;"
        " from pathlib import Path; make_dist._run(sys.executable, '-c',"
        f' \'open("METADATA", "w")\', folder=Path({str(tmp_path)!r}))'
    )
    printed(sys.executable, "-c", code, cwd=ROOT, umask=0o77)
    assert stat.S_IMODE((tmp_path / "METADATA").stat().st_mode) == 0o644


@pytest.fixture(scope="module")
def dist(tmp_path_factory) -> Path:
    """What `make dist` builds, twice, and compares."""
    folder = tmp_path_factory.mktemp("dist")
    built = printed(sys.executable, "release/make_dist.py", folder, cwd=ROOT)
    assert "equal in two builds" in built
    return folder


@pytest.mark.slow
def test_digests_of_what_was_built(dist):
    names = [path.name for path in sorted(dist.iterdir())]
    version = re.compile(r"-\d+\.\d+\.\d+(\.dev\d+)?")
    assert [version.sub("", name) for name in names] == [
        "SHA256SUMS",
        "keras_lstm_dssm-py3-none-any.whl",
        "keras_lstm_dssm.tar.gz",
        "lstm_dssm_client-py3-none-any.whl",
    ]
    printed("sha256sum", "--check", "--quiet", "SHA256SUMS", cwd=dist)


@pytest.mark.slow
def test_from_clicks_to_hits_without_the_checkout(dist, tmp_path):
    """In an empty environment: train, export, serve, query."""
    (wheel,) = dist.glob("keras_lstm_dssm-*.whl")
    venv.create(tmp_path / "venv", with_pip=True)
    bin_folder, work = tmp_path / "venv" / "bin", tmp_path / "work"
    work.mkdir()
    left_out = ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME")
    place: dict[str, Any] = {
        "cwd": work,
        "env": {k: v for k, v in os.environ.items() if k not in left_out},
    }

    def run(program: str, *arguments: object) -> str:
        return printed(bin_folder / program, *arguments, **place)

    pinned = ["-c", ROOT / "constraints.txt", wheel]
    run("python", "-m", "pip", "install", "--quiet", *pinned)
    where = run("python", "-c", "import lstm_dssm_programs as p; print(p)")
    assert str(tmp_path) in where and str(ROOT) not in where

    pairs = [("bolt", "hex bolt"), ("glue", "wood glue"), ("lamp", "desk lamp")]
    clicks = "".join(f"{query}\t{title}\n" for query, title in pairs * 20)
    (work / "clicks.tsv").write_text(clicks)
    (work / "titles.txt").write_text("".join(f"{t}\n" for _, t in pairs))
    run(
        "lstm-dssm-train", "--data=clicks.tsv", "--preset=lstm_32",
        "--epochs=3", "--batch_size=16", "--negatives=in_batch",
        "--output=RUN",
    )  # fmt: skip
    assert "# RUN\n" in (work / "RUN" / "CARD.md").read_text()
    models = ["--documents=titles.txt", "--output=MODELS"]
    run("lstm-dssm-export", "--run=RUN", *models)
    server = subprocess.Popen(
        [bin_folder / "lstm-dssm-serve", "--models=MODELS", "--port=0"],
        stdout=subprocess.PIPE,
        text=True,
        **place,
    )
    try:
        assert server.stdout
        for line in server.stdout:
            if match := re.search(r"127\.0\.0\.1:(\d+)", line):
                break
        address = f"--server=127.0.0.1:{match[1]}"
        hits = run("lstm-dssm-search", address, "--k=1", "glue")
    finally:
        server.terminate()
        server.communicate(timeout=60)
    assert "wood glue" in hits
