"""Reads JSON, text, arrays and archives from untrusted sources.

`check_plain_file` refuses devices, pipes, links out of a folder, and files that
are too large. `reading`, `line_chunks` and `text_lines` do not call this check.
A damaged file raises `InputError` with a message of one line.
"""

import csv
import gzip
import io
import json
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.version import OLDEST
from lstm_dssm_client.errors import DAMAGE

if TYPE_CHECKING:
    import numpy as np

_T = TypeVar("_T")
_Path = str | os.PathLike[str]

SETTINGS_BYTES = 1 << 26
"""Largest size of a settings file: 64 MB, about 1 GB when parsed."""

TEXTS_BYTES = 1 << 30
"""Largest size of a file that is read as a whole, 1 GB."""


@contextmanager
def damage_named(
    path: _Path, remedy: str, *further: type[Exception]
) -> Iterator[None]:
    """Turns errors of reading a file into an `InputError` with the path."""
    try:
        yield
    except InputError as error:
        if os.fspath(path) in str(error):
            raise
        raise InputError(f"{os.fspath(path)}: {error}; {remedy}") from error
    except DAMAGE + further as error:
        reason = getattr(error, "strerror", None) or str(error)
        reason = " ".join(str(reason).split()) or type(error).__name__
        if isinstance(error, KeyError):
            reason = f"no {reason}"
        raise InputError(
            f"{os.fspath(path)}: cannot be read ({reason:.200}); {remedy}"
        ) from error


def check_plain_file(
    path: _Path, folder: _Path | None = None, max_bytes: int | None = None
) -> None:
    """Checks that a file, if any, is plain, in `folder` and not too large."""
    # A link may lead to a file that must not be read; a pipe may never end.
    folder = os.path.dirname(path) or "." if folder is None else folder
    real = Path(os.path.realpath(path))
    if not real.is_relative_to(os.path.realpath(folder)):
        raise InputError(
            f"{path}: found a link to {real}, which is outside {folder};"
            " expected a plain file: replace the link by a copy of the file"
        )
    if not real.exists():
        return
    if not real.is_file():
        raise InputError(f"{path}: expected a plain file, found something else")
    if max_bytes is not None and (size := real.stat().st_size) > max_bytes:
        raise InputError(
            f"{path}: found {size >> 10:,} KB, expected {max_bytes >> 10:,} KB"
            " at most: use a file of a source that you trust"
        )


def read_bytes(
    path: _Path,
    remedy: str,
    folder: _Path | None = None,
    max_bytes: int = TEXTS_BYTES,
) -> bytes:
    """Reads the bytes of a plain file in `folder`."""
    check_plain_file(path, folder, max_bytes)
    with damage_named(path, remedy):
        return Path(path).read_bytes()


def read_text(
    path: _Path,
    remedy: str,
    folder: _Path | None = None,
    max_bytes: int = SETTINGS_BYTES,
) -> str:
    """Reads a plain file of UTF-8 text."""
    data = read_bytes(path, remedy, folder, max_bytes)
    with damage_named(path, remedy):
        return data.decode()


def read_json(
    path: _Path, folder: _Path | None = None, max_bytes: int = SETTINGS_BYTES
) -> dict[str, Any]:
    """Reads a JSON object from a plain file."""
    remedy = "expected a JSON object; the file is damaged: restore it"
    text = read_text(path, remedy, folder, max_bytes)
    with damage_named(path, remedy):
        value = json.loads(text)
    if not isinstance(value, dict):
        raise InputError(f"{path}: found {value!r:.40}, {remedy}")
    return value


def read_csv(path: _Path, folder: _Path | None = None) -> list[dict[str, str]]:
    """Reads a table of `files.write_csv`; each row is a dict column -> text."""
    remedy = "expected a table that this package wrote: restore it"
    text = read_text(path, remedy, folder)
    with damage_named(path, remedy):
        rows = list(csv.DictReader(io.StringIO(text, newline=""), strict=True))
        if any(None in row or None in row.values() for row in rows):
            raise ValueError("found a row of another width")
    return rows


def read_array(
    path: _Path, remedy: str, folder: _Path | None = None
) -> "np.ndarray":
    """Maps a `.npy` file into memory."""
    import numpy as np  # at the top, this would delay a program's help

    check_plain_file(path, folder)
    with damage_named(path, remedy):
        try:
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        except ValueError as error:
            # NumPy's message may recommend to load pickled objects.
            raise ValueError("found no array of numbers") from error
        if not isinstance(array, np.ndarray):
            array.close()
            raise ValueError("found several arrays")
    return array


def check_version(path: _Path, values: Mapping[str, Any], remedy: str) -> None:
    """Raises `InputError` if a version before `OLDEST` wrote the `values`."""
    from packaging.version import InvalidVersion, Version

    try:
        earlier = Version(values["version"]) < Version(OLDEST)
    except (KeyError, TypeError, InvalidVersion):
        return
    if earlier:
        raise InputError(
            f"{path}: written by an earlier development version; {remedy}"
        )


_UNPACKED_BYTES = 1 << 26
_UNPACKED_RATIO = 50
_EXPECTED_SIZE = (
    f"expected {_UNPACKED_RATIO} times its size at most: use a file of a"
    " source that you trust"
)


def _max_unpacked(path: _Path) -> int:
    return max(_UNPACKED_BYTES, _UNPACKED_RATIO * os.path.getsize(path))


def check_unpacked_size(path: _Path) -> None:
    """Checks the unpacked size of an archive, such as a `.keras` file."""
    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
    except DAMAGE:
        return
    if unpacked > _max_unpacked(path):
        raise InputError(
            f"{os.fspath(path)}: found an archive of"
            f" {os.path.getsize(path) >> 10:,} KB that unpacks to"
            f" {unpacked >> 10:,} KB, {_EXPECTED_SIZE}"
        )


def open_gzip(path: _Path, folder: _Path | None = None) -> io.TextIOWrapper:
    """Unpacks gzipped UTF-8 text into memory; the unpacked size is limited."""
    check_plain_file(path, folder)
    # A gzip file states an unpacked size, but the stated size may be wrong.
    max_bytes, content = _max_unpacked(path), io.BytesIO()
    with gzip.open(path, "rb") as file:
        while chunk := file.read(1 << 16):
            content.write(chunk)
            if content.tell() > max_bytes:
                raise InputError(
                    f"{os.fspath(path)}: found a gzip file that unpacks to"
                    f" more than {max_bytes >> 10:,} KB, {_EXPECTED_SIZE}"
                )
    content.seek(0)
    return io.TextIOWrapper(content, encoding="utf-8")


def read_json_gz(path: _Path, parse: Callable[[Any], _T], content: str) -> _T:
    """Parses a file of `write_json_gz`; errors name the expected `content`."""
    remedy = (
        f"expected {content}: restore the file, or train anew in another"
        " --output"
    )
    with damage_named(path, remedy), open_gzip(path) as file:
        return parse(json.load(file))


BOM = b"\xef\xbb\xbf"
_CHUNK = 1 << 22
_LONGEST = 1 << 26
_GZIP_DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile)


class EmptyFile(InputError):
    """Raised for a file without lines, or with blank lines only."""


@contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Opens a file to read bytes; a `.gz` file is decompressed."""
    path = os.fspath(path)
    opener: Callable[..., Any] = gzip.open if path.endswith(".gz") else open
    try:
        with opener(path, "rb") as file:
            yield file
    except _GZIP_DAMAGE as error:
        raise InputError(
            f"{path}:{_readable_lines(path) + 1}: found a damaged gzip file"
            f" ({error}), expected a whole one: copy it again"
        ) from None
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror or error}), expected a"
            " text file: restore it, or check the path"
        ) from error


def line_chunks(
    path: str | os.PathLike[str],
    blank_end: bool = False,  # keep blank lines at the end of the file
) -> Iterator[bytes]:
    """Yields a file in chunks of whole lines, without a byte order mark."""
    partial_line, start, empty = b"", True, True
    with reading(path) as file:
        while chunk := file.read(_CHUNK):
            data = partial_line + (chunk.removeprefix(BOM) if start else chunk)
            start = False
            cut = data.rfind(b"\n") + 1 if blank_end else _last_line_end(data)
            if cut:
                empty = False
                yield data[:cut]
            partial_line = data[cut:]
            if len(partial_line) > _LONGEST:
                raise InputError(
                    f"{os.fspath(path)}: found {_LONGEST >> 20} MB without the"
                    " end of a line, expected lines of text: check how it was"
                    " written"
                )
    if partial_line if blank_end else partial_line.strip():
        yield partial_line + b"\n"
    elif empty and not blank_end:
        raise EmptyFile(
            f"{os.fspath(path)}: found an empty file, expected lines of text:"
            " check how it was written"
        )


def numbered_lines(chunks: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yields the number of each line, from 1, and the line."""
    lines = (line for chunk in chunks for line in chunk.split(b"\n")[:-1])
    return enumerate(lines, 1)


def text_lines(
    path: str | os.PathLike[str], blank_end: bool = False
) -> Iterator[str]:
    """Yields the lines of a UTF-8 text file, without line ends."""
    for number, line in numbered_lines(line_chunks(path, blank_end)):
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            raise InputError(
                f"{os.fspath(path)}:{number}: found invalid UTF-8"
                f" ({error.reason}), expected UTF-8 text: correct the line"
            ) from None
        yield text.rstrip("\r")


_CONTROLS = re.compile("[\0-\x1f\x7f-\x9f\ud800-\udfff\ufeff]")


def cleaned(text: str) -> str:
    """Replaces white space and control characters by single spaces."""
    if text.isprintable():  # most texts
        return one_line(text) if " " in text else text
    return one_line(_CONTROLS.sub(" ", text))


def one_line(text: str) -> str:
    """Replaces each run of white space by a space; strips both ends."""
    return " ".join(text.split())


def write_lines(path: str | os.PathLike[str], lines: Iterable[str]) -> None:
    """Writes UTF-8 lines, gzipped for `.gz`, without the time of writing."""
    encoded = (line.encode() for line in lines)
    with open(path, "wb") as file:
        if os.fspath(path).endswith(".gz"):
            with gzip.GzipFile("", "wb", 6, file, mtime=0) as compressed:
                compressed.writelines(encoded)
        else:
            file.writelines(encoded)


def _readable_lines(path: str) -> int:
    """Counts the lines before the damaged part of a gzip file."""
    lines = 0
    with suppress(*_GZIP_DAMAGE), gzip.open(path, "rb") as file:
        while data := file.read1():
            lines += data.count(b"\n")
    return lines


def _last_line_end(data: bytes) -> int:
    """Returns the end of the last whole line; ignores final blank lines."""
    end = len(data.rstrip())
    if not end:
        return 0
    return data.find(b"\n", end) + 1 or data.rfind(b"\n", 0, end) + 1
