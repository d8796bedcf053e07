"""Click logs: text files of one click a line, query TAB clicked title."""

import glob
import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from keras_lstm_dssm.data.click_lines import (
    BadLines,
    Pair,
    find_bad,
    parse_line,
)
from keras_lstm_dssm.data.text_files import EmptyFile, line_chunks
from keras_lstm_dssm.errors import InputError


class LogFile(NamedTuple):
    """One file of a log, read and checked.

    Attributes:
        path: The file.
        lines: Its lines, blank ones at the very end left out.
        skipped: The numbers of its bad lines, from 1, ascending.
    """

    path: str
    lines: int
    skipped: tuple[int, ...]

    @property
    def clicks(self) -> int:
        """The number of its clicks."""
        return self.lines - len(self.skipped)


class ClickLog:
    r"""One or more click files, `.tsv` or `.tsv.gz`, read as a stream.

    A line is a query, one tab, and the title clicked for it, in UTF-8. A
    pair that was clicked again stands there again. Byte order marks, CRLF
    line ends and blank lines at the very end are accepted. Other lines are
    bad: no tab or several, an empty side, invalid UTF-8, a NUL byte, a
    carriage return within, more than 1 MB; so is a file without lines.

    Args:
        paths: A path or glob, or several.
        max_bad_lines: How many bad lines to leave out, the same ones in
            each pass. One more stops; 0 stops at the first.

    Attributes:
        paths: Tuple of str, the files as given, those of a glob sorted.
        max_bad_lines: As given.

    Raises:
        InputError: nothing there; when the log is read, a bad line too many
            (with file and line number), no click at all, a damaged gzip
            file, a file that cannot be read.

    Example:
        >>> log = ClickLog("clicks-*.tsv.gz")  # doctest: +SKIP
        >>> log.count(), next(iter(log))  # doctest: +SKIP
        (34643, Pair(query='angle bracket', document='12-Gauge Angle'))
    """

    def __init__(
        self,
        paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        max_bad_lines: int = 0,
    ) -> None:
        if isinstance(paths, str | os.PathLike):
            paths = [paths]
        # In the order given: where files lie must not decide the batches.
        found = dict.fromkeys(
            file for path in paths for file in sorted(_files(os.fspath(path)))
        )
        if not found:
            raise InputError("no click file was given: give a path or a glob")
        self.paths = tuple(found)
        self.max_bad_lines = max_bad_lines
        self._bad = BadLines(max_bad_lines)
        self._read: tuple[LogFile, ...] | None = None

    def files(self) -> tuple[LogFile, ...]:
        """Reads and checks every line once; returns what each file holds.

        Raises:
            InputError: see the class.
        """
        if self._read is None:
            self._bad = BadLines(self.max_bad_lines)
            read = tuple(_check(path, self._bad) for path in self.paths)
            if not any(file.clicks for file in read):
                raise InputError(
                    f"{', '.join(self.paths[:3])}: found bad lines only,"
                    " expected query TAB clicked title: check how the log was"
                    " written"
                )
            self._read = read
        return self._read

    def counts(self) -> tuple[int, ...]:
        """Returns the clicks by file; see `files`."""
        return tuple(file.clicks for file in self.files())

    def count(self) -> int:
        """Returns the clicks of all files; see `files`."""
        return sum(self.counts())

    def bad_lines(self) -> dict[str, int]:
        """Returns how many lines are left out, by what is wrong with them."""
        self.files()
        return dict(self._bad.found)

    def __iter__(self) -> Iterator[Pair]:
        bad = BadLines(self.max_bad_lines)
        for path in self.paths:
            number = 0
            for chunk in _chunks(path, bad):
                for line in chunk.split(b"\n")[:-1]:
                    number += 1
                    click = parse_line(line)
                    if isinstance(click, Pair):
                        yield click
                    else:
                        bad.add(path, number, click)

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


def _chunks(path: str, bad: BadLines) -> Iterator[bytes]:
    try:
        yield from line_chunks(path)
    except EmptyFile:
        bad.add(path, None, "an empty file")


def _check(path: str, bad: BadLines) -> LogFile:
    lines, skipped = 0, []
    for chunk in _chunks(path, bad):
        for index, found in find_bad(chunk):
            skipped.append(lines + index + 1)
            bad.add(path, skipped[-1], found)
        lines += chunk.count(b"\n")
    return LogFile(path, lines, tuple(skipped))
