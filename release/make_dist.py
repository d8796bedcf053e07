"""Builds the source distribution and the wheels, with reproducible bytes.

Builds the last commit twice, and compares the files. Changes that are not
committed are left out. All times in the archives are the time of the commit, or
`SOURCE_DATE_EPOCH` if set. Needs the setuptools of constraints.txt.

Example:
  python release/make_dist.py dist
"""

import gzip
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]

_BUILD = "from setuptools.build_meta import build_{0}; build_{0}({1!r})"


def main(output: Path) -> int:
    """Builds twice, compares, and writes the files and SHA256SUMS."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH") or _run(
        "git", "log", "-1", "--format=%ct", folder=ROOT
    )
    with tempfile.TemporaryDirectory() as first:
        with tempfile.TemporaryDirectory() as second:
            built = [build(Path(f), int(epoch)) for f in (first, second)]
            digests = [
                {path.name: _digest(path) for path in paths} for paths in built
            ]
        if digests[0] != digests[1]:
            names = sorted(n for n in digests[0] if digests[0][n] !=
                           digests[1].get(n))  # fmt: skip
            print(f"error: two builds differ: {', '.join(names)}")
            return 1
        output.mkdir(parents=True, exist_ok=True)
        for path in built[0]:
            shutil.copyfile(path, output / path.name)
    lines = [f"{digest}  {name}\n" for name, digest in digests[0].items()]
    (output / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")
    print("".join(lines) + f"equal in two builds; wrote {output}")
    return 0


def build(folder: Path, epoch: int) -> list[Path]:
    """Builds in a folder, from a clone of the repository; returns the files."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch)}
    source, made = folder / "source", folder / "made"
    _run("git", "clone", "--quiet", str(ROOT), str(source), folder=folder)
    _setuptools("sdist", made, source, environment)
    (sdist,) = made.glob("*.tar.gz")
    _normalise(sdist, epoch)
    with tarfile.open(sdist) as archive:
        # Before 3.10.12 and 3.11.4, Python has no `data_filter`.
        archive.extraction_filter = getattr(
            tarfile, "data_filter", lambda member, _: member
        )
        archive.extractall(folder / "unpacked")
    (unpacked,) = (folder / "unpacked").iterdir()
    _setuptools("wheel", made, unpacked, environment)
    _setuptools("wheel", made, unpacked / "client", environment)
    return [sdist, *sorted(made.glob("*.whl"))]


def _setuptools(
    kind: str, output: Path, folder: Path, environment: Mapping[str, str]
) -> None:
    code = _BUILD.format(kind, str(output))
    _run(sys.executable, "-c", code, folder=folder, environment=environment)


def _normalise(path: Path, epoch: int) -> None:
    """Rewrites an archive with sorted entries, equal times and no owners."""
    with tarfile.open(path) as archive:
        entries = sorted(archive.getmembers(), key=lambda entry: entry.name)
        contents = {
            entry.name: archive.extractfile(entry).read()  # type: ignore[union-attr]
            for entry in entries
            if entry.isfile()
        }
    partial = path.with_suffix(".partial")
    with (
        open(partial, "wb") as raw,
        gzip.GzipFile("", "wb", fileobj=raw, mtime=epoch) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        for old in entries:
            entry = tarfile.TarInfo(old.name)
            entry.type, entry.linkname = old.type, old.linkname
            entry.mtime = epoch
            entry.mode = 0o755 if old.isdir() or old.mode & 0o100 else 0o644
            content = contents.get(old.name, b"")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    partial.replace(path)


def _run(
    *command: str, folder: Path, environment: Mapping[str, str] | None = None
) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        umask=0o022,  # wheels store file modes, which depend on the umask
    )
    if done.returncode:
        sys.exit(f"error: {' '.join(command)}\n{done.stderr.strip()}")
    return done.stdout.strip()


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
