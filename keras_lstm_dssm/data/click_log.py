"""Click logs: text files of one click a line, query TAB clicked title."""

import glob
import os
from collections.abc import Iterable, Iterator

from keras_lstm_dssm.data.click_lines import (
    BadLines,
    Pair,
    click_line,
    find_bad,
    parse_line,
)
from keras_lstm_dssm.data.line_blocks import LineBlocks, LogFile
from keras_lstm_dssm.data.line_reader import EmptyFile, line_chunks
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import replacing


class ClickLog:
    r"""Streams one or more click files, `.tsv` or `.tsv.gz`.

    A line is a query, one tab, and the title clicked for it, in UTF-8; a
    pair that was clicked n times is on n lines. Byte order marks, CRLF line
    ends and blank lines at the very end are accepted. A line is bad if it
    has no tab or several, an empty side, invalid UTF-8, a NUL byte, a
    carriage return before its end, or more than 1 MB; a file without lines
    counts as one bad line.

    Args:
        paths: A path or glob, or an iterable of them.
        max_bad_lines: The number of bad lines that may be left out; each
            pass leaves out the same. 0, the default, stops at the first.

    Attributes:
        paths: Tuple of str, the files in the order given; those of one glob
            are sorted.
        max_bad_lines: The number of bad lines that may be left out.

    Raises:
        InputError: No file exists; or, when the log is read, there are
            more bad lines than allowed (with file and line number) or no
            clicks, a gzip file is damaged, or a file cannot be read.

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
        # In the order given, so that batches do not depend on folder names.
        files = dict.fromkeys(
            file for path in paths for file in sorted(_files(os.fspath(path)))
        )
        if not files:
            raise InputError("no click file was given: give a path or a glob")
        self.paths = tuple(files)
        self.max_bad_lines = max_bad_lines
        self._bad = BadLines(max_bad_lines)
        self._checked: tuple[LogFile, ...] | None = None
        self._blocks: LineBlocks | None = None

    def files(self) -> tuple[LogFile, ...]:
        """Returns the files; reads and checks every line at the first call.

        Raises:
            InputError: See the class.
        """
        if self._checked is None:
            self._bad = BadLines(self.max_bad_lines)
            checked = tuple(_check(path, self._bad) for path in self.paths)
            if not any(file.clicks for file in checked):
                raise InputError(
                    f"{', '.join(self.paths[:3])}: found bad lines only,"
                    " expected query TAB clicked title: check how the log was"
                    " written"
                )
            self._checked = checked
        return self._checked

    def blocks(self) -> LineBlocks:
        """Returns the log's lines in blocks that can be read in any order.

        Raises:
            InputError: See the class and `LineBlocks`.
        """
        if self._blocks is None:
            self._blocks = LineBlocks(self.files())
        return self._blocks

    def counts(self) -> tuple[int, ...]:
        """Returns the number of clicks in each file; see `files`."""
        return tuple(file.clicks for file in self.files())

    def count(self) -> int:
        """Returns the number of clicks in all files; see `files`."""
        return sum(self.counts())

    def bad_lines(self) -> dict[str, int]:
        """Counts the lines that are left out, by what is wrong with them."""
        self.files()
        return dict(self._bad.counts)

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


def write_pairs(
    pairs: Iterable[tuple[str, str]], path: str | os.PathLike[str]
) -> ClickLog:
    """Writes pairs as a click file, and opens it.

    Args:
        pairs: Query and clicked title of each pair.
        path: The file to write.

    Example:
    >>> pairs = [("bolt", "hex bolt"), ("glue", "wood glue")]
    >>> write_pairs(pairs, "two.tsv").count()
    2
    """
    with (
        replacing(path) as partial,
        partial.open("w", encoding="utf-8") as file,
    ):
        file.writelines(click_line(Pair(*pair)) for pair in pairs)
    return ClickLog(path)


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
        problem = "no file matches" if glob.has_magic(path) else "no such file"
        raise InputError(
            f"{path}: {problem}, expected a click file (.tsv or .tsv.gz): check"
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
        for index, problem in find_bad(chunk):
            skipped.append(lines + index + 1)
            bad.add(path, skipped[-1], problem)
        lines += chunk.count(b"\n")
    return LogFile(path, lines, tuple(skipped))
