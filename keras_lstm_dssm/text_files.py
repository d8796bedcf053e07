"""Text files of any size, plain or gzip: their lines, read and written."""

import gzip
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import IO

from keras_lstm_dssm.errors import InputError

BOM = b"\xef\xbb\xbf"
_CHUNK = 1 << 22
_LONGEST = 1 << 26
_DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile)  # of `DAMAGE`, by gzip


class EmptyFile(InputError):
    """Reports a file without lines, which a log of many files may have."""


@contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Opens a file to read its bytes, decompressed if it ends in `.gz`."""
    path = os.fspath(path)
    try:
        with _open(path) as file:
            yield file
    except _DAMAGE as error:
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
    path: str | os.PathLike[str], blank_end: bool = False
) -> Iterator[bytes]:
    """Yields a file in chunks of whole lines, each ended by a line feed.

    A byte order mark and blank lines at the very end, which editors and
    spreadsheets write, are left out (unless `blank_end`); a file of nothing
    else raises `EmptyFile`. 64 MB without a line end are not text and could
    exhaust the memory: they raise `InputError`, as `reading` does.
    """
    rest, start, empty = b"", True, True
    with reading(path) as file:
        while chunk := file.read(_CHUNK):
            data = rest + (chunk.removeprefix(BOM) if start else chunk)
            start = False
            cut = data.rfind(b"\n") + 1 if blank_end else _last_line_end(data)
            if cut:
                empty = False
                yield data[:cut]
            rest = data[cut:]
            if len(rest) > _LONGEST:
                raise InputError(
                    f"{os.fspath(path)}: found {_LONGEST >> 20} MB without the"
                    " end of a line, expected lines of text: check how it was"
                    " written"
                )
    if rest if blank_end else rest.strip():
        yield rest + b"\n"
    elif empty and not blank_end:
        raise EmptyFile(
            f"{os.fspath(path)}: found an empty file, expected lines of text:"
            " check how it was written"
        )


def numbered_lines(chunks: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Splits blocks of whole lines; yields each line after its number.

    Lines are without their ends, and numbers begin with 1. The blocks are those
    that `line_chunks` reads.
    """
    lines = (line for chunk in chunks for line in chunk.split(b"\n")[:-1])
    return enumerate(lines, 1)


def text_lines(
    path: str | os.PathLike[str], blank_end: bool = False
) -> Iterator[str]:
    """Yields the lines of a UTF-8 text file, without their ends."""
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
    """Replaces what cannot stand in a line of text by single spaces.

    That is control characters, byte order marks, lone surrogates and runs of
    white space; those at the ends are removed.
    """
    if text.isprintable():  # most are, which is known in no time
        return one_line(text) if " " in text else text
    return one_line(_CONTROLS.sub(" ", text))


def one_line(text: str) -> str:
    """Makes all white space single spaces, as in a line of a click file."""
    return " ".join(text.split())


def write_lines(path: str | os.PathLike[str], lines: Iterable[str]) -> None:
    """Writes lines as UTF-8 text, compressed if the file's name ends in `.gz`.

    Equal lines give equal bytes: the gzip header holds no time and no name.
    """
    encoded = (line.encode() for line in lines)
    with open(path, "wb") as file:
        if os.fspath(path).endswith(".gz"):
            with gzip.GzipFile("", "wb", 6, file, mtime=0) as compressed:
                compressed.writelines(encoded)
        else:
            file.writelines(encoded)


def _open(path: str) -> IO[bytes]:
    if path.endswith(".gz"):
        return gzip.open(path, "rb")  # type: ignore[return-value]
    return open(path, "rb")


def _readable_lines(path: str) -> int:
    """Counts the lines that can be read before the damage."""
    lines = 0
    with suppress(*_DAMAGE), gzip.open(path, "rb") as file:
        while data := file.read1():
            lines += data.count(b"\n")
    return lines


def _last_line_end(data: bytes) -> int:
    """Finds the end of the last whole line that is not blank."""
    end = len(data.rstrip())
    if not end:
        return 0
    return data.find(b"\n", end) + 1 or data.rfind(b"\n", 0, end) + 1
