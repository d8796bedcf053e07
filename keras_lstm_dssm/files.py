"""Writes files and folders atomically; checks paths; locks folders.

A process locks its temporary files and folders; the locks end with the process.
So the next process that writes the same file or folder can recognise and remove
the temporary files of killed processes.
"""

import csv
import fcntl
import glob
import gzip
import json
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from errno import EEXIST, ENOTDIR, ENOTEMPTY
from itertools import chain
from pathlib import Path
from typing import IO, Any

from keras_lstm_dssm.errors import InputError

_STANDARD_STREAMS = {"/dev/stdout": 1, "/dev/stderr": 2}
_MAX_NAME_BYTES = 200  # file systems allow 255, including our prefix
_TOKEN_BYTES = 8  # length of the random part of a temporary name


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Replaces a file atomically: yields a temporary path to write to."""
    path = Path(path)
    to_stream = _is_stream(path)
    target = path if to_stream else Path(os.path.realpath(path))
    folder = Path(tempfile.mkdtemp()) if to_stream else target.parent
    name = target.name
    # A long name is cut at its start, because Keras needs the suffix `.keras`.
    while len(os.fsencode(name)) > _MAX_NAME_BYTES:
        name = name[1:]
    # The token is random, because two containers may have equal process ids.
    partial = folder / f".partial-{secrets.token_hex(_TOKEN_BYTES)}-{name}"
    lock: int | None = None
    try:
        if not to_stream:
            _remove_unlocked(folder, name)
            lock = _create(partial, target)
        yield partial
        if to_stream:
            _copy_to_stream(partial, path)
        else:
            flush_to_disk(partial)  # so a power loss leaves no empty file
            os.replace(partial, target)
            flush_to_disk(folder)
    except OSError as error:
        # Python's error for a full disk names no file.
        if error.errno and str(error.filename) in ("None", str(partial)):
            error.filename = str(path)
        raise
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
            if to_stream:
                folder.rmdir()
        if lock is not None:
            os.close(lock)


def _remove_unlocked(folder: Path, name: str) -> None:
    """Removes temporary files of killed processes that were writing `name`."""
    for partial in folder.glob(f".partial-*-{glob.escape(name)}"):
        token = partial.name.removeprefix(".partial-").removesuffix(f"-{name}")
        # If `name` is "a.csv", the pattern also matches the temporary files of
        # "b-a.csv". Then `token` is longer than a random token.
        if len(token) == 2 * _TOKEN_BYTES:
            with suppress(OSError), open_lock(partial, os.O_RDWR) as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                partial.unlink()


def _is_stream(path: Path) -> bool:
    """Returns whether a path is a device, a pipe or a file descriptor."""
    if _descriptor(path) is not None:
        return True
    return path.exists() and not path.is_file() and not path.is_dir()


def _descriptor(path: Path) -> int | None:
    """Returns the descriptor of a path such as `/dev/fd/3`, else `None`."""
    # Output is written to the descriptor. If standard output is redirected to
    # a file, opening the path `/dev/stdout` would empty the file.
    if str(path) in _STANDARD_STREAMS:
        return _STANDARD_STREAMS[str(path)]
    match = re.fullmatch("(?:/dev|/proc/self)/fd/([0-9]+)", str(path))
    return int(match[1]) if match else None


def _copy_to_stream(source: Path, path: Path) -> None:
    for printed in (sys.stdout, sys.stderr):  # earlier output must come first
        printed.flush()
    number = _descriptor(path)
    with (
        source.open("rb") as file,
        open(path if number is None else os.dup(number), "wb") as stream,
    ):
        shutil.copyfileobj(file, stream)


def _create(partial: Path, target: Path) -> int:
    """Creates a locked file with the owner and permissions of `target`."""
    new_file = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    while True:
        number = os.open(partial, new_file, 0o666)
        with suppress(OSError):  # some file systems have no locks
            fcntl.flock(number, fcntl.LOCK_EX)
        if partial.exists():
            break
        os.close(number)  # another process removed the file before the lock
    try:
        with suppress(FileNotFoundError):
            old = target.stat()
            if (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
                with suppress(PermissionError):
                    os.fchown(number, old.st_uid, old.st_gid)
            os.fchmod(number, stat.S_IMODE(old.st_mode))
    except BaseException:
        os.close(number)
        raise
    return number


def flush_to_disk(path: str | os.PathLike[str]) -> None:
    """Waits until a file's bytes, or the names in a folder, are on disk."""
    try:
        number = os.open(path, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
    except OSError:
        if not os.path.isdir(path):  # not every file system syncs folders
            raise


def check_folder(folder: str | os.PathLike[str]) -> None:
    """Checks that a folder is writable, or can be made."""
    folder = Path(folder)
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir():
        raise InputError(
            f"{folder}: found a file, expected a folder to write in: name"
            " another"
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(
            f"{folder}: cannot be written to (no permission, or mounted"
            " read-only): name another folder"
        )


def check_writable(path: str | os.PathLike[str]) -> None:
    """Checks that a file can be written, before its content is computed."""
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path}: found a folder, expected a file to write")
    if _is_stream(path):
        if path.exists() and not os.access(path, os.W_OK):
            raise InputError(f"{path}: no permission to write to it")
        return
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise InputError(
            f"{path}: there is no folder {folder}; make it first, or "
            "name another"
        )
    if not os.access(folder, os.W_OK):
        raise InputError(
            f"{path}: no permission to write in {folder}; name another folder"
        )


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Writes a text in UTF-8, atomically."""
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Writes a value as indented JSON, atomically."""
    write_text(path, json.dumps(value, indent=2) + "\n")


def write_json_gz(
    path: str | os.PathLike[str], value: Any, level: int = 9
) -> None:
    """Writes compressed JSON, atomically; equal values give equal bytes."""
    with (
        replacing(path) as partial,
        open(partial, "wb") as raw,
        gzip.GzipFile("", "wb", level, raw, mtime=0) as file,
    ):
        # `json.dump` is slower than `json.dumps`.
        file.write(json.dumps(value).encode())


def cache_folder() -> str:
    """Returns `$KERAS_LSTM_DSSM_CACHE`, or `~/.cache/keras_lstm_dssm`."""
    return os.environ.get("KERAS_LSTM_DSSM_CACHE") or os.path.join(
        os.path.expanduser("~"), ".cache", "keras_lstm_dssm"
    )


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes rows, with a column for each key; `None` is an empty cell."""
    with (
        replacing(path) as partial,
        partial.open("w", newline="", encoding="utf-8") as file,
    ):
        writer = csv.DictWriter(file, list(dict.fromkeys(chain(*rows))))
        writer.writeheader()
        writer.writerows(rows)


def open_lock(path: Path, flags: int = os.O_RDWR | os.O_CREAT) -> IO[bytes]:
    """Opens a file to lock; the default `flags` create a missing file."""
    # Another user of the folder could have put a link or a pipe there.
    flags |= os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    return open(os.open(path, flags, 0o666), "r+b", 0)


@contextmanager
def new_folder(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Creates a folder atomically: yields a temporary folder to write to."""
    folder = Path(os.path.abspath(folder))
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        prefix = f".partial-{folder.name[-_MAX_NAME_BYTES // 4 :]}-"
        with hidden_folder(folder.parent, prefix) as hidden:
            # Only the owner may read `hidden`. The folder `complete` has the
            # usual permissions, and is renamed at the end.
            complete = hidden / "folder"
            complete.mkdir()
            yield complete
            for path in (*complete.rglob("*"), complete):
                flush_to_disk(path)
            exists = InputError(
                f"{folder}: another process has written this folder"
                " meanwhile, so the files of this process are removed: name"
                " another folder"
            )
            if os.path.lexists(folder):
                raise exists
            try:
                complete.rename(folder)
            except OSError as error:  # `folder` may exist by now
                if error.errno in (ENOTEMPTY, EEXIST, ENOTDIR):
                    raise exists from error
                raise
            flush_to_disk(folder.parent)
    except OSError as error:
        # Python's error for a full disk names no folder.
        if error.errno and error.filename is None:
            error.filename = str(folder)
        raise


@contextmanager
def hidden_folder(base: Path, prefix: str) -> Iterator[Path]:
    """Yields a new locked folder in `base`; removes the folder at the end."""
    base = base.resolve()
    with _locked_directory(base, fcntl.LOCK_EX):
        remove_unlocked_folders(base, prefix)
        lock = ExitStack()
        hidden = Path(tempfile.mkdtemp(prefix=prefix, dir=base))
        lock.enter_context(_locked_directory(hidden, fcntl.LOCK_EX))
    with lock:
        try:
            yield hidden
        finally:
            shutil.rmtree(hidden, ignore_errors=True)


def remove_unlocked_folders(base: Path, prefix: str) -> None:
    """Removes the hidden folders of processes that have been killed."""
    for folder in base.glob(f"{glob.escape(prefix)}*"):
        with (
            suppress(OSError),  # a living process has the lock
            _locked_directory(folder, fcntl.LOCK_EX | fcntl.LOCK_NB),
        ):
            shutil.rmtree(folder)


@contextmanager
def _locked_directory(path: Path, operation: int) -> Iterator[None]:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    number = os.open(path, flags)
    try:
        fcntl.flock(number, operation)
        yield
    finally:
        os.close(number)


@contextmanager
def lock_folder(
    folder: str | os.PathLike[str], activity: str, wait: bool = False
) -> Iterator[None]:
    """Locks a folder during an activity, such as "training".

    Without `wait`, raises `InputError` if another process has the lock.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with open_lock(folder / ".lock") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not wait:
                raise InputError(
                    f"{folder}: another process is {activity} here: wait for"
                    " its end, or stop it"
                ) from None
            print(
                f"{folder}: waiting for another process that is {activity}"
                " here",
                file=sys.stderr,
                flush=True,
            )
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
