"""DealtLog: the part of a click log that one of several workers reads."""

import os
import tempfile
import weakref
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import IO, Any

from keras_lstm_dssm.data.click_lines import BadLines, find_bad
from keras_lstm_dssm.data.click_log import ClickLog
from keras_lstm_dssm.data.line_reader import (
    BOM,
    EmptyFile,
    line_chunks,
    reading,
)
from keras_lstm_dssm.errors import InputError

_CHUNK = 1 << 22
_LONGEST = 1 << 26
_RUN = 1024  # consecutive lines of a compressed file for one worker


class DealtLog(ClickLog):
    """Streams a worker's part of a click log; together the parts are the log.

    Files are dealt like cards: worker r of n reads the files r, r + n, and so
    on. The files that are left at the end, fewer than workers, are cut by
    lines, so that one file serves any number of workers, too. A worker reads
    only its own part of a plain file that is cut, but decompresses the whole
    of a compressed one. Its lines go to a temporary file (in `$TMPDIR`), which
    the operating system removes when the process is gone.

    Args:
        paths: All files of the log, in one order on all workers.
        rank: The worker, from 0.
        workers: Number of workers.
        max_bad_lines: Number of bad lines that may be left out.
        cut: Further files, each of which is cut by lines.

    Raises:
        InputError: See `ClickLog`; or there are fewer lines than workers.

    Example:
    >>> log = DealtLog(["a.tsv", "b.tsv", "c.tsv"], rank=0, workers=2)
    """

    def __init__(
        self,
        paths: Sequence[str],
        rank: int,
        workers: int,
        max_bad_lines: int = 0,
        cut: Sequence[str | os.PathLike[str]] = (),
    ) -> None:
        whole = len(paths) - len(paths) % workers
        own = list(paths[:whole][rank::workers])
        self._cut_bad = BadLines(max_bad_lines)
        self._lines = tempfile.TemporaryFile()
        weakref.finalize(self, self._lines.close)
        found = 0
        for path in (*paths[whole:], *(os.fspath(path) for path in cut)):
            found += _copy_part(path, rank, workers, self._cut_bad, self._lines)
        self._lines.flush()
        if found:  # the file has no name, so that nothing has to remove it
            own.append(f"/proc/self/fd/{self._lines.fileno()}")
        if not own:
            raise InputError(
                f"{', '.join(paths[:3])}: found too few lines for {workers} "
                "workers: train with fewer"
            )
        super().__init__(own, max_bad_lines)

    def bad_lines(self) -> dict[str, int]:
        """Counts the lines of the part that are left out, see `ClickLog`."""
        return dict(Counter(super().bad_lines()) + self._cut_bad.counts)


def _copy_part(
    path: str, rank: int, workers: int, bad: BadLines, target: IO[bytes]
) -> int:
    """Copies the clicks of a worker's lines, and returns their number."""
    count = 0
    read = _every_nth_run if path.endswith(".gz") else _range_of_bytes
    for number, chunk in read(path, rank, workers, bad):
        lines = chunk.split(b"\n")[:-1]
        for index, problem in reversed(list(find_bad(chunk))):
            bad.add(path, number(index), problem)
            del lines[index]
        target.writelines(line + b"\n" for line in lines)
        count += len(lines)
    return count


class _LineNumber:
    """Finds the number of a line only when it is asked for.

    Args:
        path: The file.
        start: Position of the chunk's first byte, or the number of its first
            line if `path` is `None`.
    """

    def __init__(self, path: str | None, start: int) -> None:
        self._path = path
        self._start = start

    def __call__(self, index: int) -> int:
        """Returns the number, from 1, of the chunk's line `index`."""
        if self._path is None:
            return self._start + index
        lines, left = 0, self._start
        with reading(self._path) as file:
            while left and (data := file.read(min(_CHUNK, left))):
                lines += data.count(b"\n")
                left -= len(data)
        return lines + index + 1


def _every_nth_run(
    path: str, rank: int, workers: int, bad: BadLines
) -> Iterator[tuple[_LineNumber, bytes]]:
    first = 0  # number of the chunk's first line, from 0
    try:
        for chunk in line_chunks(path):
            lines = chunk.split(b"\n")[:-1]
            start = 0
            while start < len(lines):
                run = (first + start) // _RUN
                end = min(len(lines), (run + 1) * _RUN - first)
                if run % workers == rank:
                    part = b"\n".join(lines[start:end]) + b"\n"
                    yield _LineNumber(None, first + start + 1), part
                start = end
            first += len(lines)
    except EmptyFile:
        if rank == 0:
            bad.add(path, None, "an empty file")


def _range_of_bytes(
    path: str, rank: int, workers: int, bad: BadLines
) -> Iterator[tuple[_LineNumber, bytes]]:
    """Reads the lines that begin in the worker's range of the file's bytes."""
    with reading(path) as file:
        size = file.seek(0, os.SEEK_END)
        start, end = (size * part // workers for part in (rank, rank + 1))
        if rank == 0 and _is_blank(file, 0):
            bad.add(path, None, "an empty file")
            return
        file.seek(max(start - 1, 0))
        if start:  # a line that began before is the previous worker's
            _rest_of_line(file, path)
        while (position := file.tell()) < end:
            chunk = file.read(min(_CHUNK, end - position))
            if not chunk.endswith(b"\n"):
                chunk += _rest_of_line(file, path)
            if not chunk.endswith(b"\n"):
                chunk += b"\n"
            if not position:
                chunk = chunk.removeprefix(BOM)
            number = _LineNumber(path, position)
            if not chunk.split(b"\n")[-2].strip():
                following = file.tell()
                if _is_blank(file, following):  # to the file's very end
                    chunk = chunk.rstrip() + b"\n"
                    if chunk.strip():
                        yield number, chunk
                    return
                file.seek(following)
            yield number, chunk


def _is_blank(file: Any, position: int) -> bool:
    """Returns whether a file has nothing but white space from there on."""
    file.seek(position)
    while data := file.read(_CHUNK):
        if data.removeprefix(BOM).strip():
            return False
    return True


def _rest_of_line(file: Any, path: str) -> bytes:
    line: bytes = file.readline(_LONGEST)
    if len(line) == _LONGEST:
        raise InputError(
            f"{path}: found {_LONGEST >> 20} MB without the end of a line, "
            "expected lines of text: check how it was written"
        )
    return line
