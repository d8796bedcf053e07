"""A full disk or a read-only folder: one line, and a complete checkpoint."""

import pathlib
import resource
import subprocess
import sys

import pytest

from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.tools.train import program
from tests.bare_package import BARE_PACKAGE
from tests.reliability.program import SETTINGS, TRAIN, write_log


def mounted(options: str, command: list[str]) -> list[str]:
    """A command in its own mount namespace, with a file system at `$0`."""
    script = f'mount -t tmpfs -o {options} none "$0" && exec "$@"'
    return ["unshare", "--mount", "--map-root-user", "sh", "-c", script,
            *command]  # fmt: skip


@pytest.fixture
def small_disk(tmp_path) -> pathlib.Path:
    """A folder to mount on; skips where that is not allowed."""
    folder = tmp_path / "disk"
    folder.mkdir()
    try:
        command = mounted("size=1m", [str(folder), "true"])
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no mount namespaces on this machine")
    return folder


def one_line(errors: str) -> str:
    assert errors.startswith("error: ") and errors.count("\n") == 1, errors
    return errors


def check_whole(run: RunFolder) -> None:
    model = run.load_checkpoint()
    assert int(model.optimizer.iterations.numpy()) % 15 == 0
    assert not list(run.path.rglob(".partial-*"))
    assert not run.model.exists()


@pytest.mark.parametrize(("limit", "name"), [
    (1 << 16, "last.keras: File too large"),
    pytest.param(0, "history.csv: File too large", marks=pytest.mark.slow),
])  # fmt: skip
def test_no_room_after_the_first_epoch(limit, name, tmp_path, fresh_process):
    """Files of more than `limit` bytes cannot be written."""
    run = RunFolder(tmp_path / "run")
    log = write_log(tmp_path / "clicks.tsv")
    flags = [f"--data={log}", *SETTINGS, "--epochs=4", f"--output={run.path}"]
    with fresh_process.program("train", *flags) as process:
        assert any("15/15" in line for line in process.stdout)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (limit, limit))
        errors = process.communicate()[1]
    assert process.returncode == 1
    assert name in one_line(errors)
    check_whole(run)


@pytest.mark.slow
def test_a_full_disk_and_more_room(small_disk):
    """360 kB hold the first checkpoint, of 220 kB, but not a second one."""
    log = write_log(small_disk.with_name("clicks.tsv"))
    copy = small_disk.with_name("copy")
    run = small_disk / "run"
    flags = [f"--data={log}", *SETTINGS, "--epochs=4", f"--output={run}"]
    script = (
        f"{sys.executable} {TRAIN} {' '.join(flags)};"
        f" code=$?; cp -r {run} {copy}; exit $code"
    )
    process = subprocess.run(
        mounted("size=360k", [str(small_disk), "sh", "-c", script]),
        capture_output=True,
        text=True,
    )
    assert process.returncode == 1
    assert f"error: {run}/checkpoints/last.keras: No space left on device" in (
        process.stderr
    )
    check_whole(RunFolder(copy))
    assert program.run(["train", "--resume", f"--output={copy}"]) == 0
    history = RunFolder(copy).read_history()
    assert [row["updates"] for row in history] == [15, 30, 45, 60]


def test_a_read_only_folder_shows_before_the_work(small_disk):
    code = (
        "import sys, pathlib;"
        "from keras_lstm_dssm.files import check_folder;"
        "check_folder(pathlib.Path(sys.argv[1]))"
    )
    words = ["-c", BARE_PACKAGE + code, str(small_disk / "new" / "run")]
    command = mounted("ro", [str(small_disk), sys.executable, *words])
    process = subprocess.run(command, capture_output=True, text=True)
    assert process.returncode == 1
    last = process.stderr.splitlines()[-1]
    assert last.endswith(
        f"InputError: {small_disk}: cannot be written to (no permission, or"
        " mounted read-only): name another folder"
    )
