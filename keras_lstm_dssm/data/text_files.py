"""How text files of any size are read: in pieces of whole lines."""

import gzip
import os
import zlib
from collections.abc import Iterator

from keras_lstm_dssm.errors import InputError

_BOM = b"\xef\xbb\xbf"
_CHUNK = 1 << 22


def line_chunks(path: str | os.PathLike[str]) -> Iterator[bytes]:
    """Yields a file in pieces of whole lines, each ended by a newline.

    A name that ends in `.gz` is decompressed. A byte order mark and blank
    lines at the very end, which editors and spreadsheets leave, are left out;
    blank lines elsewhere are not.

    Raises:
        InputError: nothing but blank lines, or a damaged gzip file.
    """
    path = os.fspath(path)
    rest, start, found = b"", True, False
    opener = gzip.open if path.endswith(".gz") else open
    try:
        with opener(path, "rb") as file:
            while chunk := file.read(_CHUNK):
                data = rest + (chunk.removeprefix(_BOM) if start else chunk)
                start = False
                cut = _last_line_end(data)
                if cut:
                    found = True
                    yield data[:cut]
                rest = data[cut:]
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(
            f"{path}: found a damaged gzip file ({error}), expected a whole"
            " one: copy it again"
        ) from None
    if rest.strip():
        yield rest + b"\n"
    elif not found:
        raise InputError(
            f"{path}: found an empty file, expected lines of text: check how"
            " it was written"
        )


def text_lines(path: str | os.PathLike[str]) -> Iterator[str]:
    """Yields the lines of a UTF-8 text file, without their ends.

    Raises:
        InputError: as `line_chunks`, and where the file is not UTF-8.
    """
    try:
        for chunk in line_chunks(path):
            for line in chunk.split(b"\n")[:-1]:
                yield line.decode().rstrip("\r")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{os.fspath(path)}: cannot be read ({error}), expected UTF-8"
            " text: write it again"
        ) from None


def _last_line_end(data: bytes) -> int:
    """Where the last whole line ends, trailing blank lines not counted."""
    end = len(data.rstrip())
    if not end:
        return 0
    return data.find(b"\n", end) + 1 or data.rfind(b"\n", 0, end) + 1
