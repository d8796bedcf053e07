"""LineBlocks: random access to the lines of a click log, for shuffling."""

import os
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, NamedTuple

import numpy as np

from keras_lstm_dssm.data.line_reader import BOM, line_chunks, reading
from keras_lstm_dssm.errors import InputError

_LEAST_LINES = 8
_MOST_BLOCKS = 1 << 22
_READ_AT_ONCE = 1 << 30


class LogFile(NamedTuple):
    """Describes a file of a click log whose lines have been checked.

    Attributes:
        path: The path of the file.
        lines: Number of lines, without the blank ones at the very end.
        skipped: Line numbers of the bad lines, from 1, ascending.
    """

    path: str
    lines: int
    skipped: tuple[int, ...]

    @property
    def clicks(self) -> int:
        """Number of lines that hold a click."""
        return self.lines - len(self.skipped)


class LineBlocks:
    r"""Reads the lines of a click log by blocks, in any order of the blocks.

    A block is a run of consecutive lines of one file: 8 lines, or more for a
    log of more than 33 million. Only the byte position of each block is held
    in memory, 8 bytes each. gzip allows no random access, so compressed files
    are decompressed once into a temporary file (in `$TMPDIR`), which the
    operating system removes when the object or the process is gone.

    Args:
        files: The checked files of the log, from `ClickLog.files`.

    Attributes:
        clicks: int `[blocks]`, the number of clicks in each block.

    Raises:
        InputError: A file cannot be read or decompressed, or has changed
            since its lines were counted.

    Example:
    >>> blocks = LineBlocks(ClickLog("clicks.tsv").files())
    >>> blocks.read(np.array([0, 7]))[0]
    b'angle bracket\t12-Gauge Angle'
    """

    def __init__(self, files: Sequence[LogFile]) -> None:
        self.files = tuple(files)
        total = sum(file.lines for file in files)
        self.block_lines = max(_LEAST_LINES, -(-total // _MOST_BLOCKS))
        self._decompressed: IO[bytes] | None = None  # of all .gz files
        # Per file: where each block begins, and where the last one ends.
        self._starts = [self._find_starts(file) for file in self.files]
        self._first_block = np.cumsum(
            [0, *(len(starts) - 1 for starts in self._starts)]
        )
        self.clicks = np.concatenate(
            [self._count(file) for file in self.files]
        ).astype(np.int64)

    def __len__(self) -> int:
        return len(self.clicks)

    def read(self, blocks: np.ndarray) -> list[bytes]:
        """Reads the clicks of some blocks.

        Args:
            blocks: int `[n]`, indices of blocks, ascending.

        Returns:
            Their lines, without line feeds and without the bad lines.

        Raises:
            InputError: See the class.
        """
        lines: list[bytes] = []
        bounds = np.searchsorted(blocks, self._first_block)
        for number, file in enumerate(self.files):
            in_file = blocks[bounds[number] : bounds[number + 1]]
            if not len(in_file):
                continue
            in_file = in_file - self._first_block[number]
            # Neighbouring blocks are read together.
            cuts = np.flatnonzero(np.diff(in_file) != 1) + 1
            firsts = in_file[np.concatenate([[0], cuts])]
            ends = in_file[np.concatenate([cuts - 1, [-1]])] + 1
            with self._opened(file) as descriptor:
                for first, end in zip(
                    firsts.tolist(), ends.tolist(), strict=True
                ):
                    lines += self._read_run(number, descriptor, first, end)
        return lines

    def _read_run(
        self, number: int, descriptor: int, first: int, end: int
    ) -> list[bytes]:
        file, starts = self.files[number], self._starts[number]
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
        offset = lines = 0
        copy = None
        if file.path.endswith(".gz"):
            copy = self._decompressed_file()
            offset = copy.seek(0, os.SEEK_END)
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
            if copy:
                _write(copy, chunk, file.path)
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
    """Reads bytes `start` to `end`, fewer if the file ends before."""
    parts = []
    while start < end:
        part = os.pread(descriptor, min(end - start, _READ_AT_ONCE), start)
        if not part:
            break
        parts.append(part)
        start += len(part)
    return b"".join(parts)


def _write(copy: IO[bytes], chunk: bytes, path: str) -> None:
    rest = memoryview(chunk)
    try:
        while rest:
            rest = rest[copy.write(rest) :]
    except OSError as error:
        raise InputError(
            f"{path}: found no room to decompress it in"
            f" {tempfile.gettempdir()} ({error.strerror}), which shuffling"
            " needs: set TMPDIR to a folder on a larger disk, or decompress"
            " the file"
        ) from error
