"""Breaks the package on purpose, and sees that a test notices.

Where a test goes because another one proves the same, a line of `breaks.txt`
has a break of the package that the old test would have found, and the test that
finds it now. Run all, or those with a word in their line:

    python -m tests.kit.breaks [WORD]
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests.fresh_process import ROOT, FreshProcesses, connect, fork_server

BREAKS = Path(__file__).with_name("breaks.txt")
PYTEST = f"""
import sys
# A file that was changed within a second would be taken for the compiled one.
sys.dont_write_bytecode = True
others = [path for path in sys.path if path not in ("", {str(ROOT)!r})]
sys.path[:] = [sys.argv[1], *others]
import pytest
try:
    import keras_lstm_dssm
except BaseException as error:  # a break must not be one of the language
    print(repr(error))
    sys.exit(2)
assert keras_lstm_dssm.__file__.startswith(sys.argv[1])
sys.exit(pytest.main(sys.argv[2:]))
"""
FAILED = 1
"""Exit code of pytest where a test has failed; others mean that none ran."""


class Break(NamedTuple):
    """A change of one file, and the test that fails on it."""

    file: str
    old: str
    new: str
    test: str

    def apply(self, root: Path) -> None:
        """Writes the change into a copy of the project."""
        path = root / self.file
        text = path.read_text(encoding="utf-8")
        if text.count(self.old) != 1:
            raise ValueError(
                f"{self.file}: found {self.old!r} {text.count(self.old)} times,"
                " expected it once"
            )
        path.write_text(text.replace(self.old, self.new), encoding="utf-8")


def read_breaks(path: Path) -> list[Break]:
    """Reads the lines: file, old text, new text and test, with TABs between.

    A line that begins with "#" says which test has gone.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    return [
        Break(*line.split("\t"))
        for line in lines
        if line and not line.startswith("#")
    ]


def copy_of_project(folder: Path) -> Path:
    """Copies all files that git knows."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).exists() or (ROOT / name).is_symlink():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name, follow_symlinks=False)
    return folder


def run_tests(
    fresh_process: FreshProcesses, root: Path, *tests: str
) -> tuple[int | None, str]:
    """Runs tests of a copy in a new process; the exit code, and the output."""
    words = ["-q", "-x", "-p", "no:cacheprovider", *tests]
    with fresh_process.start(PYTEST, root, *words, folder=root) as process:
        printed, errors = process.communicate()
    return process.returncode, printed + errors


def survived(
    fresh_process: FreshProcesses, root: Path, each: Break
) -> str | None:
    """Returns what is wrong with a break: the test does not fail; or None."""
    kept = (root / each.file).read_bytes()
    each.apply(root)
    try:
        code, printed = run_tests(fresh_process, root, each.test)
    finally:
        (root / each.file).write_bytes(kept)
    return None if code == FAILED else f"exit code {code}: {printed[-500:]}"


def chosen_breaks(*words: str) -> list[Break]:
    """Returns the breaks whose lines have all words.

    Raises:
        SystemExit: There is none; pytest would run every test.
    """
    chosen = [
        each
        for each in read_breaks(BREAKS)
        if all(word in "\t".join(each) for word in words)
    ]
    if not chosen:
        sys.exit(
            f"error: no line of {BREAKS} has {' and '.join(map(repr, words))}:"
            " give a part of the path, the change or the test of a break"
        )
    return chosen


def main(*words: str) -> int:
    """Runs the breaks; returns the number of those that no test has found."""
    chosen = chosen_breaks(*words)
    with tempfile.TemporaryDirectory() as base:
        root = copy_of_project(Path(base, "copy"))
        with (
            fork_server(Path(base, "server")),
            connect(Path(base, "server", "socket")),
        ):
            fresh_process = FreshProcesses(
                Path(base, "server", "socket"), Path(base, "server")
            )
            tests = sorted({each.test for each in chosen})
            code, printed = run_tests(fresh_process, root, *tests)
            if code:
                print(f"without a break:\n{printed[-2000:]}")
                return len(chosen)
            bad = 0
            for each in chosen:
                problem = survived(fresh_process, root, each)
                bad += problem is not None
                verdict = "NOT FOUND" if problem else "found"
                print(f"{verdict}: {each.file}: {each.new} by {each.test}")
                if problem:
                    print(problem)
    print(f"{len(chosen)} breaks, {bad} not found")
    return bad


if __name__ == "__main__":
    sys.exit(bool(main(*sys.argv[1:])))
