"""The built wheel, in an empty environment: train, export, serve, query."""

import os
import re
import stat
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def dist(tmp_path_factory) -> Path:
    """What `make dist` builds, twice, and compares."""
    folder = tmp_path_factory.mktemp("dist")
    done = subprocess.run(
        [sys.executable, "release/make_dist.py", folder],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "equal in two builds" in done.stdout
    return folder


def test_the_umask_of_who_builds_does_not_matter(tmp_path):
    """Wheels hold the modes of files that setuptools has just written."""
    code = (
        "import sys; sys.path.insert(0, 'release'); import make_dist;"
        " from pathlib import Path; make_dist._run(sys.executable, '-c',"
        f' \'open("METADATA", "w")\', folder=Path({str(tmp_path)!r}))'
    )
    subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, umask=0o77
    )
    assert stat.S_IMODE((tmp_path / "METADATA").stat().st_mode) == 0o644


@pytest.mark.slow
def test_digests_of_what_was_built(dist):
    names = [path.name for path in sorted(dist.iterdir())]
    assert [
        re.sub(r"-\d+\.\d+\.\d+(\.dev\d+)?", "", name) for name in names
    ] == [
        "SHA256SUMS",
        "keras_lstm_dssm-py3-none-any.whl",
        "keras_lstm_dssm.tar.gz",
        "lstm_dssm_client-py3-none-any.whl",
    ]
    check = ["sha256sum", "--check", "--quiet", "SHA256SUMS"]
    assert subprocess.run(check, cwd=dist).returncode == 0


@pytest.mark.slow
def test_from_clicks_to_hits_without_the_checkout(dist, tmp_path):
    (wheel,) = dist.glob("keras_lstm_dssm-*.whl")
    venv.create(tmp_path / "venv", with_pip=True)
    bin_folder = tmp_path / "venv" / "bin"
    work = tmp_path / "work"
    work.mkdir()
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME")
    }

    def run(program: str, *arguments: str | Path) -> str:
        done = subprocess.run(
            [bin_folder / program, *arguments],
            cwd=work,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    run(
        "python", "-m", "pip", "install", "--quiet", "-c",
        ROOT / "constraints.txt", wheel,
    )  # fmt: skip
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
    run(
        "lstm-dssm-export", "--run=RUN", "--documents=titles.txt",
        "--output=MODELS",
    )  # fmt: skip
    server = subprocess.Popen(
        [bin_folder / "lstm-dssm-serve", "--models=MODELS", "--port=0"],
        cwd=work,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout
        for line in server.stdout:
            if match := re.search(r"127\.0\.0\.1:(\d+)", line):
                break
        hits = run(
            "lstm-dssm-query", f"--server=127.0.0.1:{match[1]}", "--k=1", "glue"
        )
    finally:
        server.terminate()
        server.communicate(timeout=60)
    assert "wood glue" in hits
