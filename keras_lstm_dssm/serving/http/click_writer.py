"""Writes followed results as a click log, in the form that trainings read."""

import fcntl
import os
import threading
import time
import unicodedata
from pathlib import Path
from types import TracebackType

from keras_lstm_dssm.data.click_lines import Pair, click_line, parse_line
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import check_writable, flush_to_disk

ROTATE_MB = 64
"""Size in MiB above which a click log is renamed and a new one begins."""


class ClickWriter:
    """Appends clicks to a file; threads may share it.

    Each line is on disk before `write` returns. A file above `rotate_mb` is
    renamed to `NAME-TIME.tsv`, so that `NAME*.tsv` are all clicks. What a
    crash left of a line is removed when the file is opened again. One process
    at a time can write to a file. If another program renames the file, a new
    one begins.

    Args:
        path: The file, which may exist; it should end in `.tsv`.
        rotate_mb: Size in MiB above which the file is renamed.

    Raises:
        InputError: The folder is missing or cannot be written to, or another
            process writes to the file.

    Example:
        >>> with ClickWriter("clicks.tsv") as clicks:
        ...     clicks.write(Pair("angle bracket", "12-Gauge Angle"))
        True
    """

    def __init__(
        self, path: str | os.PathLike[str], rotate_mb: float = ROTATE_MB
    ) -> None:
        check_writable(path)
        self._path = Path(path)
        self._most = int(rotate_mb * (1 << 20))
        self._lock = threading.Lock()
        self._file = self._open()

    def write(self, pair: Pair) -> bool:
        """Appends a click, and waits until it is on disk.

        Args:
            pair: The query and the title; control characters become spaces.

        Returns:
            Whether there was anything to write: not if the query or the title
            is empty.

        Raises:
            OSError: The disk is full, for example; nothing was appended.
        """
        line = click_line(Pair(*map(_cleaned, pair))).encode()
        if not isinstance(parse_line(line.rstrip(b"\n")), Pair):
            return False
        with self._lock:
            end = os.fstat(self._file).st_size
            if end and end + len(line) > self._most:
                os.rename(self._path, self._old_name())
            if self._is_renamed():
                old, self._file = self._file, self._open()
                os.close(old)
            end = os.fstat(self._file).st_size
            try:
                _write_all(self._file, line)
                os.fsync(self._file)
            except OSError:
                os.ftruncate(self._file, end)
                raise
        return True

    def _open(self) -> int:
        number = os.open(
            self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600
        )
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(number)
            raise InputError(
                f"{self._path}: another process writes clicks to this file; "
                "give each server its own --click_log"
            ) from error
        _remove_partial_line(number)
        flush_to_disk(self._path.absolute().parent)
        return number

    def _old_name(self) -> Path:
        second = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
        fraction = time.time_ns() % 10**9
        return self._path.with_name(
            f"{self._path.stem}-{second}.{fraction:09}Z{self._path.suffix}"
        )

    def _is_renamed(self) -> bool:
        """Returns whether the file has another name by now, or none."""
        try:
            return not os.path.samestat(
                os.stat(self._path), os.fstat(self._file)
            )
        except FileNotFoundError:
            return True

    def close(self) -> None:
        """Closes the file."""
        os.close(self._file)

    def __enter__(self) -> "ClickWriter":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _cleaned(text: str) -> str:
    """Replaces control characters and byte order marks by spaces."""
    return "".join(
        " " if unicodedata.category(c) in ("Cc", "Cs") or c == "\ufeff" else c
        for c in text
    )


def _write_all(number: int, line: bytes) -> None:
    while line:
        line = line[os.write(number, line) :]


def _remove_partial_line(number: int) -> None:
    end = os.lseek(number, 0, os.SEEK_END)
    position = end
    while position:
        start = max(0, position - 4096)
        block = os.pread(number, position - start, start)
        if b"\n" in block:
            position = start + block.rindex(b"\n") + 1
            break
        position = start
    if position != end:
        os.ftruncate(number, position)
