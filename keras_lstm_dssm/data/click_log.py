"""Click logs: text files of one click a line, query TAB clicked title."""

import glob
import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple, NoReturn

import numpy as np

from keras_lstm_dssm.data.text_files import line_chunks
from keras_lstm_dssm.errors import InputError

_EXPECTED = "expected query TAB clicked title: correct or remove the line"


class Pair(NamedTuple):
    """One click."""

    query: str
    document: str


class ClickLog:
    r"""One or more click files, `.tsv` or `.tsv.gz`, read as a stream.

    A line is a query, one tab, and the title clicked for it. A pair that was
    clicked again stands there again. A byte order mark, CRLF line ends and
    blank lines at the very end are accepted, and invalid UTF-8 is read as
    U+FFFD.

    Args:
        paths: A path or glob, or several.

    Attributes:
        paths: Tuple of str, the files in sorted order.

    Raises:
        InputError: nothing there, a line that is not a pair, an empty file,
            a damaged gzip file; the last three when the log is read.

    Example:
        >>> log = ClickLog("clicks-*.tsv.gz")  # doctest: +SKIP
        >>> log.count(), next(iter(log))  # doctest: +SKIP
        (34643, Pair(query='angle bracket', document='12-Gauge Angle'))
    """

    def __init__(
        self, paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
    ) -> None:
        if isinstance(paths, str | os.PathLike):
            paths = [paths]
        found = {file for path in paths for file in _files(os.fspath(path))}
        if not found:
            raise InputError("no click file was given: give a path or a glob")
        self.paths = tuple(sorted(found))
        self._counts: tuple[int, ...] | None = None

    def counts(self) -> tuple[int, ...]:
        """Reads every line once, checks it, and returns the clicks by file.

        Raises:
            InputError: with file and line number, at the first wrong line.
        """
        if self._counts is None:
            self._counts = tuple(map(_count_file, self.paths))
        return self._counts

    def count(self) -> int:
        """Returns the clicks of all files; see `counts`."""
        return sum(self.counts())

    def __iter__(self) -> Iterator[Pair]:
        for path in self.paths:
            number = 0
            for chunk in line_chunks(path):
                for line in chunk.split(b"\n")[:-1]:
                    number += 1
                    query, document = _fields(path, number, line)
                    yield Pair(
                        query.decode("utf-8", "replace"),
                        document.decode("utf-8", "replace"),
                    )

    def documents(self) -> Iterator[str]:
        """Yields each clicked title once, in order of first appearance."""
        return iter(dict.fromkeys(pair.document for pair in self))


def click_line(pair: Pair) -> str:
    """Returns the line of a click file; white space becomes single spaces."""
    query, document = (" ".join(text.split()) for text in pair)
    return f"{query}\t{document}\n"


def _files(path: str) -> list[str]:
    if os.path.isfile(path):
        return [path]
    if os.path.isdir(path):
        raise InputError(
            f"{path}: found a folder, expected click files (.tsv or .tsv.gz):"
            f" give {os.path.join(path, '*.tsv')}"
        )
    files = [file for file in glob.glob(path) if os.path.isfile(file)]
    if not files:
        what = "no file matches" if glob.has_magic(path) else "no such file"
        raise InputError(
            f"{path}: {what}, expected a click file (.tsv or .tsv.gz): check"
            " the path"
        )
    return files


def _count_file(path: str) -> int:
    lines = 0
    for chunk in line_chunks(path):
        data = np.frombuffer(chunk, np.uint8)
        ends = np.flatnonzero(data == ord("\n"))
        starts = np.concatenate([[0], ends[:-1] + 1])
        tabs = np.flatnonzero(data == ord("\t"))
        suspects: Iterable[int] = range(len(ends))
        if len(tabs) == len(ends) and ((starts <= tabs) & (tabs < ends)).all():
            # One tab in each line, so that only the sides remain to be
            # looked at, and only where one begins with white space.
            sure = (data[starts] > ord(" ")) & (data[tabs + 1] > ord(" "))
            suspects = np.flatnonzero(~sure).tolist()
        for index in suspects:
            line = chunk[starts[index] : ends[index]]
            _fields(path, lines + index + 1, line)
        lines += len(ends)
    return lines


def _fields(path: str, number: int, line: bytes) -> tuple[bytes, bytes]:
    fields = [field.strip() for field in line.split(b"\t")]
    if len(fields) != 2:
        tabs = len(fields) - 1
        _reject(path, number, f"{tabs} tabs" if tabs else "no tab")
    if not fields[0]:
        _reject(path, number, "an empty query")
    if not fields[1]:
        _reject(path, number, "an empty title")
    return fields[0], fields[1]


def _reject(path: str, number: int, found: str) -> NoReturn:
    raise InputError(f"{path}:{number}: found {found}, {_EXPECTED}")
