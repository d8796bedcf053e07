"""Divides the lines of a click log among workers."""

import functools
import os
import tempfile
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from operator import add
from typing import IO, Any

from keras_lstm_dssm.data.click_log import BadLines, ClickLog, find_bad
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.plain_files import BOM, EmptyFile, line_chunks, reading

_CHUNK = 1 << 22
_LONGEST_LINE = 1 << 26
_RUN = 1024  # a compressed file is divided into runs of this many lines


class ShardedClickLog(ClickLog):
    """Streams one worker's share of a click log."""

    def __init__(
        self,
        paths: Sequence[str],
        rank: int,
        workers: int,
        max_bad_lines: int = 0,
        cut: Sequence[str | os.PathLike[str]] = (),
    ) -> None:
        # All workers read equally many whole files. The remaining files, and
        # all files of `cut`, are divided by lines.
        whole = len(paths) - len(paths) % workers
        files = list(paths[:whole][rank::workers])
        self._cut_bad = BadLines(max_bad_lines)
        self._lines = tempfile.TemporaryFile()
        weakref.finalize(self, self._lines.close)
        copied = 0
        for path in (*paths[whole:], *(os.fspath(path) for path in cut)):
            copied += _copy_share(
                path, rank, workers, self._cut_bad, self._lines
            )
        self._lines.flush()
        if copied:  # the temporary file has no name, but a descriptor
            files.append(f"/proc/self/fd/{self._lines.fileno()}")
        if not files:
            raise InputError(
                f"{', '.join(paths[:3])}: found too few lines for {workers} "
                "workers: give fewer workers"
            )
        super().__init__(files, max_bad_lines)

    def bad_lines(self) -> dict[str, int]:
        """Returns, for each reason, the number of this worker's bad lines."""
        return dict(Counter(super().bad_lines()) + self._cut_bad.counts)


def _copy_share(
    path: str, rank: int, workers: int, bad: BadLines, target: IO[bytes]
) -> int:
    count = 0
    read_share = _every_nth_run if path.endswith(".gz") else _range_of_bytes
    for number_of, chunk in read_share(path, rank, workers, bad):
        lines = chunk.split(b"\n")[:-1]
        for index, problem in reversed(list(find_bad(chunk))):
            # Only a raised error needs the line number, which is slow to find.
            raises = bad.counts.total() >= bad.allowed
            bad.add(path, number_of(index) if raises else None, problem)
            del lines[index]
        target.writelines(line + b"\n" for line in lines)
        count += len(lines)
    return count


_NumberOf = Callable[[int], int]
"""Function: index of a line in a chunk -> line number in the file, from 1."""


def _line_number(path: str, position: int, index: int) -> int:
    """Returns the number of line `index` of the chunk at byte `position`."""
    lines, remaining = 0, position
    with reading(path) as file:
        while remaining and (data := file.read(min(_CHUNK, remaining))):
            lines += data.count(b"\n")
            remaining -= len(data)
    return lines + index + 1


def _every_nth_run(
    path: str, rank: int, workers: int, bad: BadLines
) -> Iterator[tuple[_NumberOf, bytes]]:
    """Yields runs `rank`, `rank + workers`, .., each as one or more chunks."""
    first = 0  # number of lines before the chunk
    try:
        for chunk in line_chunks(path):
            lines = chunk.split(b"\n")[:-1]
            start = 0
            while start < len(lines):
                run = (first + start) // _RUN
                end = min(len(lines), (run + 1) * _RUN - first)
                if run % workers == rank:
                    chunk = b"\n".join(lines[start:end]) + b"\n"
                    yield functools.partial(add, first + start + 1), chunk
                start = end
            first += len(lines)
    except EmptyFile:
        if rank == 0:
            bad.add(path, None, "an empty file")


def _range_of_bytes(
    path: str, rank: int, workers: int, bad: BadLines
) -> Iterator[tuple[_NumberOf, bytes]]:
    """Yields the lines that begin in the worker's range of the file's bytes."""
    with reading(path) as file:
        size = file.seek(0, os.SEEK_END)
        start, end = size * rank // workers, size * (rank + 1) // workers
        if rank == 0 and _is_blank(file, 0):
            bad.add(path, None, "an empty file")
            return
        file.seek(max(start - 1, 0))
        if start:  # skip the end of the previous worker's last line
            _rest_of_line(file, path)
        while (position := file.tell()) < end:
            chunk = file.read(min(_CHUNK, end - position))
            if not chunk.endswith(b"\n"):
                chunk += _rest_of_line(file, path)
            if not chunk.endswith(b"\n"):
                chunk += b"\n"
            if not position:
                chunk = chunk.removeprefix(BOM)
            number_of = functools.partial(_line_number, path, position)
            if not chunk.split(b"\n")[-2].strip():
                next_position = file.tell()
                if _is_blank(file, next_position):
                    chunk = chunk.rstrip() + b"\n"
                    if chunk.strip():
                        yield number_of, chunk
                    return
                file.seek(next_position)
            yield number_of, chunk


def _is_blank(file: Any, position: int) -> bool:
    """Returns whether a file has only white space from a position on."""
    file.seek(position)
    while data := file.read(_CHUNK):
        if data.removeprefix(BOM).strip():
            return False
    return True


def _rest_of_line(file: Any, path: str) -> bytes:
    line: bytes = file.readline(_LONGEST_LINE)
    if len(line) == _LONGEST_LINE:
        raise InputError(
            f"{path}: found {_LONGEST_LINE >> 20} MB without a line end, "
            "expected lines of text: check the file"
        )
    return line
