"""How files are written: beside their place, then renamed; JSON and CSV."""

import csv
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from keras_lstm_dssm.errors import InputError


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Gives a path to write to, renamed to `path` when all went well.

    Readers see the old file or the whole new one, after a power loss too; a
    failure leaves the old one as it was, and nothing beside it.

    Raises:
        OSError: It cannot be written; `filename` is `path`.

    Example:
    >>> with replacing("titles.txt") as partial:
    ...     partial.write_text("Angle bracket", encoding="utf-8")
    """
    path = Path(path)
    # The ending stays: some writers choose the format by it.
    partial = path.with_name(f".partial-{os.getpid()}-{path.name}")
    try:
        yield partial
        sync(partial)
        os.replace(partial, path)
        sync(path.parent)
    except OSError as error:
        # A full disk is reported without a name.
        if error.errno and str(error.filename) in ("None", str(partial)):
            error.filename = str(path)
        raise
    finally:
        partial.unlink(missing_ok=True)


def sync(path: str | os.PathLike[str]) -> None:
    """Waits until a file's bytes, or a folder's names, are on the disk.

    A rename can reach the disk before the bytes: after a power loss the file
    would have its new name and be empty.

    Raises:
        OSError: The file is not there, or the disk fails.
    """
    try:
        number = os.open(path, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
    except OSError:
        # Not every file system can do it for a folder.
        if not os.path.isdir(path):
            raise


def check_folder(folder: str | os.PathLike[str]) -> None:
    """Checks that a folder can be written in, or made, before the work.

    Raises:
        InputError: A file stands in the way, or there is no permission.
    """
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
    """Checks that a file can be written, before the work it shall hold.

    Raises:
        InputError: It is a folder, or its own folder is missing or closed.
    """
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path}: found a folder, expected a file to write")
    if not path.parent.is_dir():
        raise InputError(
            f"{path}: there is no folder {path.parent}; make it first, or "
            "name another"
        )
    if not os.access(path.parent, os.W_OK):
        raise InputError(
            f"{path}: no permission to write in {path.parent}; name another "
            "folder"
        )


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Writes a value as JSON."""
    with replacing(path) as partial:
        text = json.dumps(value, indent=2) + "\n"
        partial.write_text(text, encoding="utf-8")


def read_json(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads an object that `write_json` wrote.

    Raises:
        InputError: It is not JSON, or another kind of value.
        OSError: It cannot be read.
    """
    expected = "expected a JSON object; the file is damaged: restore it"
    try:
        value = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path}: {error}; {expected}") from error
    if not isinstance(value, dict):
        raise InputError(f"{path}: found {value!r:.40}, {expected}")
    return value


def cache_folder() -> str:
    """Where what is made once is kept: `$KERAS_LSTM_DSSM_CACHE`.

    By default `~/.cache/keras_lstm_dssm`.
    """
    return os.environ.get("KERAS_LSTM_DSSM_CACHE") or os.path.join(
        os.path.expanduser("~"), ".cache", "keras_lstm_dssm"
    )


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes rows with the same keys, one at least; None is an empty cell."""
    with (
        replacing(path) as partial,
        partial.open("w", newline="", encoding="utf-8") as file,
    ):
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def read_csv(path: Path) -> list[dict[str, str]]:
    """Reads what `write_csv` wrote."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
