"""Click logs: text files with one click per line, query TAB clicked title.

A third column may hold the weight of the click.
"""

import glob
import os
import re
import tempfile
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, NamedTuple

import numpy as np

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import replacing
from keras_lstm_dssm.plain_files import (
    BOM,
    EmptyFile,
    line_chunks,
    numbered_lines,
    one_line,
    reading,
    write_lines,
)

_LONGEST = 1 << 20  # largest number of bytes in a line
_LARGEST_WEIGHT = 1e9  # limited so that sums in float32 stay finite
_SMALLEST_WEIGHT = float(np.finfo(np.float32).tiny)


class Pair(NamedTuple):
    """Holds a query and the title that was clicked for it.

    Example:
    >>> Pair("hex bolt", "steel hex bolt").document
    'steel hex bolt'
    """

    query: str
    document: str


def click_line(pair: Pair) -> str:
    """Formats a click as a line; each run of white space becomes one space."""
    query, document = map(one_line, pair)
    return f"{query}\t{document}\n"


def weighted_line(query: str, title: str, weight: float = 1.0) -> str:
    """Formats a click as a line; a weight of 1 is left out."""
    line = click_line(Pair(query, title))
    return line if weight == 1 else f"{line[:-1]}\t{weight:.7g}\n"


def weight_of(line: bytes) -> float:
    """Returns the weight in a valid line, or 1 if the line has none."""
    _, _, weight = line.partition(b"\t")[2].partition(b"\t")
    return float(weight) if weight else 1.0


def parse_line(line: bytes) -> Pair | str:
    """Parses a line into a click, or returns what is wrong with the line."""
    if len(line) > _LONGEST:
        return f"a line of more than {_LONGEST >> 20} MB"
    if b"\0" in line:
        return "a NUL byte"
    fields = [line_field(field) for field in line.split(b"\t")]
    if len(fields) == 3 and (problem := _wrong_weight(fields.pop())):
        return problem
    if len(fields) != 2:
        return f"{len(fields) - 1} tabs" if len(fields) > 1 else "no tab"
    query, document = fields
    if not query:
        return "an empty query"
    if not document:
        return "an empty title"
    if b"\r" in query or b"\r" in document:
        return "a carriage return within the line"
    try:
        return Pair(query.decode(), document.decode())
    except UnicodeDecodeError:
        return "invalid UTF-8"


def _wrong_weight(field: bytes) -> str | None:
    try:
        # `float` accepts "1_0" and rejects "1?0", so "?" replaces "_".
        weight = float(field.replace(b"_", b"?"))
    except ValueError:
        return "2 tabs"
    if _SMALLEST_WEIGHT <= weight <= _LARGEST_WEIGHT:
        return None
    return "a weight that is not a number from 1.2e-38 to 1e9"


def line_field(field: bytes) -> bytes:
    """Strips white space and a leading byte order mark from a field."""
    # In concatenated files, any line can start with a byte order mark.
    return field.strip().removeprefix(BOM).strip()


def find_bad(chunk: bytes) -> Iterator[tuple[int, str]]:
    """Yields the index and the problem of each bad line of a chunk."""
    data = np.frombuffer(chunk, np.uint8)
    ends = np.flatnonzero(data == ord("\n"))
    starts = np.concatenate([[0], ends[:-1] + 1])
    tabs = np.flatnonzero(data == ord("\t"))
    suspects: Iterable[int] = range(len(ends))
    if (
        len(tabs) == len(ends)
        and ((starts <= tabs) & (tabs < ends)).all()
        and b"\0" not in chunk
        and (b"\r" not in chunk or chunk.count(b"\r") == chunk.count(b"\r\n"))
        and (chunk.isascii() or _is_plain_utf8(chunk))
    ):
        # Each line has one tab. Then only long lines, and lines with a field
        # that is empty or starts with white space, can be bad.
        is_good = (data[starts] > ord(" ")) & (data[tabs + 1] > ord(" "))
        is_good &= ends - starts <= _LONGEST
        suspects = np.flatnonzero(~is_good).tolist()
    for index in suspects:
        problem = parse_line(chunk[starts[index] : ends[index]])
        if isinstance(problem, str):
            yield index, problem


class BadLines:
    """Counts bad lines; raises `InputError` if more than `allowed` are bad."""

    def __init__(
        self, allowed: int, expected: str = "query TAB clicked title in UTF-8"
    ) -> None:
        self.allowed = allowed
        self._expected = expected
        self.counts: Counter[str] = Counter()

    def add(self, path: str, number: int | None, problem: str) -> None:
        """Counts a bad line; `number` is `None` if the whole file is bad."""
        self.counts[problem] += 1
        if self.counts.total() <= self.allowed:
            return
        location = f"{path}:{number}" if number else path
        flag = "--max_bad_lines=100 (lstm-dssm-train)"
        advice = f", or leave such lines out with {flag}"
        if self.allowed:
            advice = (
                f"; including it, {self.counts.total()} lines are bad"
                f" ({describe_bad(self.counts)}), more than"
                f" --max_bad_lines={self.allowed}"
            )
        raise InputError(
            f"{location}: found {problem}, expected {self._expected}: correct"
            f" or remove it{advice}"
        )


def describe_bad(counts: dict[str, int]) -> str:
    """Lists problems, each with its count of lines, most frequent first."""
    return ", ".join(
        f"{problem}: {count:,}"
        for problem, count in Counter(counts).most_common()
    )


def _is_plain_utf8(chunk: bytes) -> bool:
    try:
        return BOM not in chunk and bool(chunk.decode())
    except UnicodeDecodeError:
        return False


# To shuffle a log, blocks of consecutive lines are read in random order.
_LEAST_LINES = 8  # lines in a block; the last block of a file may have fewer
_MOST_BLOCKS = 1 << 22  # if a log would have more blocks, blocks get longer
_READ_AT_ONCE = 1 << 30  # largest number of bytes in a call of `os.pread`


class LogFile(NamedTuple):
    """A file whose lines have been checked."""

    path: str
    lines: int  # number of lines, without blank lines at the end
    skipped: tuple[int, ...]  # ascending line numbers (from 1) of bad lines
    weighted: bool = False  # whether any click has a weight

    @property
    def clicks(self) -> int:
        """Number of lines that hold a click."""
        return self.lines - len(self.skipped)


class LineBlocks:
    """Gives random access to a click log, in blocks of consecutive lines."""

    def __init__(self, files: Sequence[LogFile]) -> None:
        self.files = tuple(files)
        total = sum(file.lines for file in files)
        self.block_lines = max(_LEAST_LINES, -(-total // _MOST_BLOCKS))
        # gzip has no random access: .gz files are decompressed into this file.
        self._decompressed: IO[bytes] | None = None
        # For each file, the offsets of all blocks and of the end, in bytes. The
        # offsets of a .gz file are positions in `_decompressed`.
        self._starts = [self._find_starts(file) for file in self.files]
        self._first_block = np.cumsum(
            [0, *(len(starts) - 1 for starts in self._starts)]
        )
        # The number of clicks in each block: int64 `[blocks]`.
        self.clicks = np.concatenate(
            [self._count(file) for file in self.files]
        ).astype(np.int64)

    def __len__(self) -> int:
        return len(self.clicks)

    def read(self, blocks: np.ndarray) -> list[bytes]:
        """Reads the good lines of the blocks with these ascending indices."""
        lines: list[bytes] = []
        bounds = np.searchsorted(blocks, self._first_block)
        for file_index, file in enumerate(self.files):
            file_blocks = blocks[bounds[file_index] : bounds[file_index + 1]]
            if not len(file_blocks):
                continue
            file_blocks = file_blocks - self._first_block[file_index]
            # Neighbouring blocks are read together.
            cuts = np.flatnonzero(np.diff(file_blocks) != 1) + 1
            firsts = file_blocks[np.concatenate([[0], cuts])]
            ends = file_blocks[np.concatenate([cuts - 1, [-1]])] + 1
            with self._opened(file) as descriptor:
                for first, end in zip(
                    firsts.tolist(), ends.tolist(), strict=True
                ):
                    lines += self._read_run(file_index, descriptor, first, end)
        return lines

    def _read_run(
        self, file_index: int, descriptor: int, first: int, end: int
    ) -> list[bytes]:
        file, starts = self.files[file_index], self._starts[file_index]
        data = _read(descriptor, int(starts[first]), int(starts[end]))
        lines = data.split(b"\n")
        if not lines[-1]:
            lines.pop()
        first_line = first * self.block_lines
        end_line = min(end * self.block_lines, file.lines)
        if len(lines) != end_line - first_line:
            raise InputError(
                f"{file.path}: found {len(lines):,} lines from line"
                f" {first_line + 1:,}, expected the {end_line - first_line:,}"
                " that were there when training began: restore the file"
            )
        low, high = np.searchsorted(
            file.skipped, [first_line + 1, end_line + 1]
        )
        for line_number in reversed(file.skipped[low:high]):
            del lines[line_number - 1 - first_line]
        return lines

    def _find_starts(self, file: LogFile) -> np.ndarray:
        """Finds the offsets of a file's blocks; decompresses a .gz file."""
        offset = lines = 0
        target = None
        if file.path.endswith(".gz"):
            target = self._decompressed_file()
            offset = target.seek(0, os.SEEK_END)
        elif file.lines:
            with reading(file.path) as source:
                offset = len(BOM) if source.read(len(BOM)) == BOM else 0
        block_starts: list[np.ndarray] = []
        for chunk in line_chunks(file.path) if file.lines else ():
            feeds = np.flatnonzero(np.frombuffer(chunk, np.uint8) == ord("\n"))
            starts = np.concatenate([[0], feeds[:-1] + 1])
            block_starts.append(
                offset + starts[-lines % self.block_lines :: self.block_lines]
            )
            if target:
                _write(target, chunk, file.path)
            offset += len(chunk)
            lines += len(feeds)
        if lines != file.lines:
            raise InputError(
                f"{file.path}: found {lines:,} lines, expected the"
                f" {file.lines:,} that were counted before: restore the file"
            )
        return np.concatenate([*block_starts, [offset]]).astype(np.int64)

    def _decompressed_file(self) -> IO[bytes]:
        if self._decompressed is None:
            self._decompressed = tempfile.TemporaryFile(buffering=0)
            weakref.finalize(self, self._decompressed.close)
        return self._decompressed

    def _count(self, file: LogFile) -> np.ndarray:
        blocks = -(-file.lines // self.block_lines)
        edges = np.arange(blocks + 1) * self.block_lines
        skipped = (np.array(file.skipped, np.int64) - 1) // self.block_lines
        return np.diff(np.minimum(edges, file.lines)) - np.bincount(
            skipped, minlength=blocks
        )

    @contextmanager
    def _opened(self, file: LogFile) -> Iterator[int]:
        if file.path.endswith(".gz"):
            yield self._decompressed_file().fileno()
        else:
            with reading(file.path) as source:
                yield source.fileno()


def _read(descriptor: int, start: int, end: int) -> bytes:
    chunks = []
    while start < end:
        data = os.pread(descriptor, min(end - start, _READ_AT_ONCE), start)
        if not data:
            break
        chunks.append(data)
        start += len(data)
    return b"".join(chunks)


def _write(target: IO[bytes], chunk: bytes, path: str) -> None:
    remaining = memoryview(chunk)
    try:
        while remaining:
            remaining = remaining[target.write(remaining) :]
    except OSError as error:
        raise InputError(
            f"{path}: found no room to decompress it in"
            f" {tempfile.gettempdir()} ({error.strerror}); shuffling needs the"
            " decompressed file: set TMPDIR to a folder on a larger disk, or"
            " decompress the file"
        ) from error


class ClickLog:
    r"""Streams one or more click files, `.tsv` or `.tsv.gz`.

    A line is a query, a tab, and the clicked title, in UTF-8. A pair that was
    clicked n times is on n lines, or on one line with a second tab and the
    weight n. A weight is from 1.2e-38 to 1e9. Byte order marks, CRLF line ends
    and blank lines at the end are accepted. A line is bad if it has one
    column or more than three, a third column that is not a weight, an empty
    field, invalid UTF-8, a NUL byte, a carriage return before its end, or more
    than 1 MB. A file without lines counts as one bad line.

    Args:
        paths: A path or glob, or an iterable of paths and globs.
        max_bad_lines: The number of bad lines that may be skipped. Default 0.

    Attributes:
        paths: Tuple of str, the files in the order given. The files of a glob
            are sorted.
        max_bad_lines: The number of bad lines that may be skipped.

    Raises:
        InputError: A file does not exist. When the log is read: a file cannot
            be read, gzip data are damaged, or more lines are bad than allowed
            (the message has file and line number). When clicks are counted or
            batched: there is no click, or a file has a header or doubled
            quotes.

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
        # The order of `paths` is kept. If all files were sorted by path, the
        # name of a folder would change the batches.
        files = dict.fromkeys(
            file for path in paths for file in sorted(_files(os.fspath(path)))
        )
        if not files:
            raise InputError("no click file was given: give a path or a glob")
        self.paths = tuple(files)
        self.max_bad_lines = max_bad_lines
        self._bad = BadLines(max_bad_lines)
        self._weighted: bool | None = None
        self._checked: tuple[LogFile, ...] | None = None
        self._blocks: LineBlocks | None = None

    def files(self) -> tuple[LogFile, ...]:
        """Returns the files; the first call reads and checks every line."""
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
        """Returns the log's lines in blocks that can be read in any order."""
        if self._blocks is None:
            self._blocks = LineBlocks(self.files())
        return self._blocks

    @property
    def weighted(self) -> bool:
        """Whether any click has a weight."""
        if self._weighted is None:
            self._weighted = any(file.weighted for file in self.files())
        return self._weighted

    # In distributed training, each worker reads a part of the log. All workers
    # then set `weighted` to whether any of the parts has a weight.
    @weighted.setter
    def weighted(self, weighted: bool) -> None:
        self._weighted = weighted

    def counts(self) -> tuple[int, ...]:
        """Returns the number of clicks in each file."""
        return tuple(file.clicks for file in self.files())

    def count(self) -> int:
        """Returns the number of clicks in all files."""
        return sum(self.counts())

    def bad_lines(self) -> dict[str, int]:
        """Returns problem -> number of skipped lines with this problem."""
        self.files()
        return dict(self._bad.counts)

    def __iter__(self) -> Iterator[Pair]:
        return (pair for pair, _ in self.lines())

    def lines(self) -> Iterator[tuple[Pair, bytes]]:
        """Yields each click and its line; `weight_of(line)` is the weight."""
        bad = BadLines(self.max_bad_lines)
        for path in self.paths:
            for number, line in numbered_lines(_chunks(path, bad)):
                click = parse_line(line)
                if isinstance(click, Pair):
                    yield click, line
                else:
                    bad.add(path, number, click)

    def documents(self) -> Iterator[str]:
        """Yields each clicked title once, in order of first appearance."""
        return iter(dict.fromkeys(pair.document for pair in self))


def write_pairs(
    pairs: Iterable[tuple[str, str]], path: str | os.PathLike[str]
) -> ClickLog:
    """Writes pairs to a click file, and opens the file.

    Args:
        pairs: Query and clicked title of each pair.
        path: The file to write, compressed if its name ends in `.gz`.

    Example:
    >>> pairs = [("bolt", "hex bolt"), ("glue", "wood glue")]
    >>> write_pairs(pairs, "two.tsv").count()
    2
    """
    with replacing(path) as partial:
        write_lines(partial, map(click_line, _checked_pairs(pairs)))
    return ClickLog(path)


def _checked_pairs(pairs: Iterable[tuple[str, str]]) -> Iterator[Pair]:
    if not isinstance(pairs, Iterable):
        raise InputError(
            f"found {pairs!r:.60} ({type(pairs).__name__}), expected clicks:"
            " paths of files, or pairs of a query and a clicked title"
        )
    query: Any
    title: Any
    for index, pair in enumerate(pairs):
        try:
            query, title = () if isinstance(pair, str) else pair
        except (TypeError, ValueError):
            query = title = None
        if not (isinstance(query, str) and isinstance(title, str)):
            raise InputError(
                f"pair {index} is {pair!r:.60}, expected a query and a clicked"
                " title, two strings; to give files, join their paths by commas"
            )
        yield Pair(query, title)


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


_HEADER = re.compile(
    rb'"?(query|q|search[ _]?term|search[ _]?query|keywords?)"?\t"?'
    rb"(title|clicked|clicked[ _]title|document|product|(product|item)_id)"
    rb'"?(?=[\t\r\n])',
    re.IGNORECASE,
)
_QUOTED = re.compile(rb'(?:^|[\t\n])"[^\t\n]*""[^\t\n]*"(?=[\t\r\n])')


def _refuse_dialect(path: str, chunk: bytes, lines_before: int) -> None:
    """Raises `InputError` for a header, or for `""` in a field in quotes."""
    number = lines_before + 1
    problem = "a header" if number == 1 and _HEADER.match(chunk) else ""
    if b'""' in chunk and (match := _QUOTED.search(chunk)):
        number += chunk.count(b"\n", 0, match.start() + 1)
        problem = "a field in quotes whose quotes are doubled"
    if problem:
        raise InputError(
            f"{path}:{number}: found {problem}, expected only query TAB"
            " clicked title: lstm-dssm-prepare --clicks reads such files, and"
            " makes a folder for --data"
        )


def _check(path: str, bad: BadLines) -> LogFile:
    lines, weighted = 0, False
    skipped: list[int] = []
    for chunk in _chunks(path, bad):
        _refuse_dialect(path, chunk, lines)
        bad_indices = set()
        for index, problem in find_bad(chunk):
            bad_indices.add(index)
            skipped.append(lines + index + 1)
            bad.add(path, skipped[-1], problem)
        if not weighted and (
            bad_indices or chunk.count(b"\t") > chunk.count(b"\n")
        ):
            weighted = any(
                line.count(b"\t") == 2 and index not in bad_indices
                for index, line in enumerate(chunk.split(b"\n")[:-1])
            )
        lines += chunk.count(b"\n")
    return LogFile(path, lines, tuple(skipped), weighted)
