"""Files appear whole or not at all, and keep what they are."""

import errno
import os
import pathlib
import stat
import subprocess
import sys
import threading

import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import (
    check_writable,
    hidden_folder,
    lock_folder,
    new_folder,
    replacing,
    write_json,
)
from tests.bare_package import BARE_PACKAGE


def test_replaces_when_all_went_well(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with replacing(path) as partial:
        partial.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_bytes_reach_the_disk_before_the_name_does(tmp_path, monkeypatch):
    done: list[str] = []
    rename = os.replace

    def fsync(number: int) -> None:
        name = pathlib.Path(os.readlink(f"/proc/self/fd/{number}")).name
        done.append(f"sync {name}")
        if name == tmp_path.name:
            raise OSError(errno.EINVAL, "no folders")  # as some disks say

    def replace(old: pathlib.Path, new: pathlib.Path) -> None:
        assert old.read_text() == "new"
        done.append(f"rename to {new.name}")
        rename(old, new)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    with replacing(tmp_path / "a.txt") as partial:
        partial.write_text("new")
    assert done == [
        f"sync {partial.name}", "rename to a.txt", f"sync {tmp_path.name}",
    ]  # fmt: skip


def test_a_failure_leaves_the_old_file_alone(tmp_path, monkeypatch):
    def fail(number: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), replacing(path) as partial:
        partial.write_text("half")
        raise KeyboardInterrupt
    monkeypatch.setattr(os, "fsync", fail)  # the disk fails
    with pytest.raises(OSError) as caught, replacing(path) as partial:
        partial.write_text("new")
    assert caught.value.filename == str(path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_an_error_names_the_file_that_was_asked_for(tmp_path):
    path = tmp_path / "none" / "a.txt"
    with pytest.raises(FileNotFoundError) as caught:
        with replacing(path) as partial:
            partial.write_text("new")
    assert caught.value.filename == str(path)
    path = tmp_path / "a.txt"
    with pytest.raises(OSError) as full, replacing(path):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert full.value.filename == str(path)
    with pytest.raises(OSError) as other, replacing(path):
        pathlib.Path(tmp_path / "input.txt").read_text()
    assert other.value.filename == str(tmp_path / "input.txt")


def test_a_device_is_written_to_and_not_replaced(tmp_path):
    device = tmp_path / "null"
    try:
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    except PermissionError:  # only root may; the device itself will do
        device = pathlib.Path("/dev/null")
    check_writable(device)
    write_json(device, {"a": 1})
    assert stat.S_ISCHR(device.stat().st_mode)


def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received: list[str] = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_text()))
    reader.start()
    check_writable(pipe)
    with replacing(pipe) as partial:
        partial.write_text("new")
    reader.join()
    assert received == ["new"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize("path", ["/dev/stdout", "/dev/fd/1"])
def test_standard_output_continues_in_a_file(path, tmp_path):
    """The shell has redirected it: what was printed is not overwritten."""
    code = (
        "import sys; from keras_lstm_dssm.files import *; print('before');"
        "check_writable(sys.argv[1]); write_json(sys.argv[1], {'a': 1});"
        "print('after')"
    )
    output = tmp_path / "out.txt"
    with output.open("wb") as file:
        subprocess.run(
            [sys.executable, "-c", BARE_PACKAGE + code, path],
            stdout=file,
            check=True,
        )
    assert output.read_text() == 'before\n{\n  "a": 1\n}\nafter\n'


def test_a_link_is_followed(tmp_path):
    target = tmp_path / "real" / "a.txt"
    target.parent.mkdir()
    target.write_text("old")
    link, missing = tmp_path / "link.txt", tmp_path / "missing.txt"
    link.symlink_to(target)
    missing.symlink_to("real/b.txt")
    for path in (link, missing):
        check_writable(path)
        with replacing(path) as partial:
            partial.write_text("new")
        assert path.is_symlink()
        assert path.read_text() == "new"
    assert sorted(os.listdir(target.parent)) == ["a.txt", "b.txt"]
    assert target.read_text() == "new"


def test_a_prepared_link_is_not_followed(tmp_path, monkeypatch):
    """Who may write in the folder cannot choose what file is overwritten."""
    other = tmp_path / "other.txt"
    other.write_text("other")
    (tmp_path / f".partial-{os.getpid()}-a.txt").symlink_to(other)
    with replacing(tmp_path / "a.txt") as partial:
        partial.write_text("new")
    assert other.read_text() == "other"
    monkeypatch.setattr("secrets.token_hex", lambda _: "guessed")
    (tmp_path / ".partial-guessed-b.txt").symlink_to(other)
    with pytest.raises(FileExistsError) as error:
        with replacing(tmp_path / "b.txt") as partial:
            partial.write_text("new")
    assert error.value.filename == str(tmp_path / "b.txt")
    assert other.read_text() == "other"


def test_two_processes_of_one_number(tmp_path):
    """As in two containers that share a volume."""
    path = tmp_path / "a.txt"
    with replacing(path) as first:
        with replacing(path) as second:
            first.write_text("first")
            second.write_text("second")
        assert path.read_text() == "second"
    assert path.read_text() == "first"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_permissions_stay(tmp_path):
    path, new = tmp_path / "a.txt", tmp_path / "new.txt"
    path.write_text("old")
    path.chmod(0o600)
    if os.geteuid() == 0:
        os.chown(path, 1234, 1235)
    before = path.stat()
    with replacing(path) as partial:
        assert stat.S_IMODE(partial.stat().st_mode) == 0o600  # while written
        partial.write_text("new")
    after = path.stat()
    assert after.st_ino != before.st_ino
    assert stat.S_IMODE(after.st_mode) == 0o600
    assert (after.st_uid, after.st_gid) == (before.st_uid, before.st_gid)
    old_mask = os.umask(0o027)
    write_json(new, {})
    os.umask(old_mask)
    assert stat.S_IMODE(new.stat().st_mode) == 0o640


@pytest.mark.parametrize("letter", ["a", "\u00e9"])
def test_a_long_name(letter, tmp_path):
    size = len(letter.encode())
    path = tmp_path / (letter * (250 // size) + ".json")
    with replacing(path) as partial:
        assert partial.suffix == ".json"
        partial.write_text("new")
    assert path.read_text() == "new"


def test_what_cannot_be_written_is_known_before(tmp_path):
    check_writable(tmp_path / "a.txt")
    (tmp_path / "a.txt").write_text("old")
    check_writable(tmp_path / "a.txt")
    for path, message in (
        (tmp_path, "found a folder"),
        (tmp_path / "none" / "a.txt", "there is no folder .*none; make it"),
        (tmp_path / "a.txt" / "b.txt", "there is no folder .*a.txt; make it"),
    ):
        with pytest.raises(InputError, match=message):
            check_writable(path)
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_closed_folder(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="no permission to write in"):
        check_writable(tmp_path / "a.txt")


HOLD = """
from keras_lstm_dssm.files import lock_folder
with lock_folder(sys.argv[1], "training"):
    print("locked", flush=True)
    sys.stdin.read()
"""


def test_one_process_at_a_time_has_the_lock(tmp_path):
    folder = tmp_path / "new" / "folder"
    with subprocess.Popen(
        [sys.executable, "-c", BARE_PACKAGE + HOLD, folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout.readline() == b"locked\n"
        with (
            pytest.raises(InputError, match="another process is measuring he"),
            lock_folder(folder, "measuring"),
        ):
            pytest.fail("two processes have the lock")
        other.kill()
        other.wait()
        with lock_folder(folder, "measuring"):
            pass


def test_a_lock_that_is_a_link_is_not_followed(tmp_path):
    other = tmp_path / "other"
    other.write_text("kept")
    (tmp_path / ".lock").symlink_to(other)
    with pytest.raises(OSError, match="symbolic"), lock_folder(tmp_path, "x"):
        pytest.fail("the lock is another file")
    assert other.read_text() == "kept"


WRITING = """
import sys
from pathlib import Path
from keras_lstm_dssm import files
path = Path(sys.argv[1])
writing = {
    "hidden": lambda: files.hidden_folder(path, ".publish-"),
    "file": lambda: files.replacing(path / "a.txt"),
    "folder": lambda: files.new_folder(path / "new"),
}[sys.argv[2]]
with writing() as partial:
    if sys.argv[2] == "file":
        partial.write_text("half")
    else:
        (partial / "version").mkdir()
    print("writing", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize(("kind", "write"), [
    ("hidden", lambda path: hidden_folder(path, ".publish-")),
    ("file", lambda path: replacing(path / "a.txt")),
    ("folder", lambda path: new_folder(path / "new")),
])  # fmt: skip
def test_what_killed_processes_left_is_removed_and_nothing_else(
    tmp_path, kind, write
):
    """Not what a living process writes, nor what has another name."""
    others = {".partial-ours", ".partial-0123-a.txt", ".publish.txt", "new.txt"}
    others |= {".partial-0123456789abcdef-b-a.txt"}
    for name in others:
        (tmp_path / name).touch()
    command = [sys.executable, "-c", BARE_PACKAGE + WRITING, tmp_path, kind]
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}

    def partials() -> set[str]:
        return {*os.listdir(tmp_path)} - others

    with (
        subprocess.Popen(command, **options) as killed,
        subprocess.Popen(command, **options) as working,
    ):
        for process in (killed, working):
            assert process.stdout.readline() == b"writing\n"
        assert len(both := partials()) == 2
        killed.kill()
        killed.wait()
        with write(tmp_path) as ours:
            assert len(partials() & both) == 1 and len(partials()) == 2
            if kind == "file":
                ours.write_text("ours")
        working.stdin.close()
        if kind == "file":
            assert working.wait() == 0
            assert (tmp_path / "a.txt").read_text() == "half"
        elif kind == "folder":  # the first one stays
            assert working.wait() == 1
            assert not (tmp_path / "new" / "version").exists()
    left = {"hidden": set(), "file": {"a.txt"}, "folder": {"new"}}
    assert partials() == left[kind]


def test_a_folder_that_another_process_has_written_stays(tmp_path, monkeypatch):
    message = (
        "new: another process has written this folder meanwhile, .* another"
    )
    with (
        pytest.raises(InputError, match=message),
        new_folder(tmp_path / "new") as partial,
    ):
        (partial / "a.txt").write_text("second")
        with new_folder(tmp_path / "new") as first:
            (first / "a.txt").write_text("first")
    # A third one writes it just after this one has looked.
    monkeypatch.setattr(os.path, "lexists", lambda path: False)
    (tmp_path / "file").write_text("first")
    for name in ("new", "file"):
        with (
            pytest.raises(InputError, match=message.replace("new", name)),
            new_folder(tmp_path / name) as partial,
        ):
            (partial / "a.txt").write_text("third")
    assert (tmp_path / "file").read_text() == "first"
    (tmp_path / "file").unlink()
    assert (tmp_path / "new" / "a.txt").read_text() == "first"
    assert os.listdir(tmp_path) == ["new"]
    with pytest.raises(KeyboardInterrupt), new_folder(tmp_path / "b"):
        raise KeyboardInterrupt
    assert os.listdir(tmp_path) == ["new"]
