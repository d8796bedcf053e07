"""Files appear whole, or not at all."""

import errno
import os
import pathlib

import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import (
    check_writable,
    read_json,
    replacing,
    write_json,
)


def test_replaces_when_all_went_well(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with replacing(path) as partial:
        partial.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_bytes_reach_the_disk_before_the_name_does(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
        f"sync {partial.name}",
        "rename to a.txt",
        f"sync {tmp_path.name}",
    ]


def test_a_disk_that_fails_leaves_the_old_file_alone(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(number: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    path = tmp_path / "a.txt"
    path.write_text("old")
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError) as caught, replacing(path) as partial:
        partial.write_text("new")
    assert caught.value.filename == str(path)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_a_failure_leaves_the_old_file_alone(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), replacing(path) as partial:
        partial.write_text("half")
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_an_error_names_the_file_that_was_asked_for(
    tmp_path: pathlib.Path,
) -> None:
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


def test_what_cannot_be_written_is_known_before(
    tmp_path: pathlib.Path,
) -> None:
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
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_closed_folder(tmp_path: pathlib.Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="no permission to write in"):
        check_writable(tmp_path / "a.txt")


def test_json_is_read_as_written(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.json"
    write_json(path, {"title": "\u00bd in. bolt", "grades": [1, 2]})
    assert read_json(path) == {"title": "\u00bd in. bolt", "grades": [1, 2]}
    path.write_bytes(b'{"title": "\xc2\xbd in."}')
    assert read_json(path) == {"title": "\u00bd in."}
    for damaged in (b"", b"{", b"[1]", b"\xff"):
        path.write_bytes(damaged)
        with pytest.raises(
            InputError, match=r"a\.json: .* the file is damaged"
        ):
            read_json(path)
