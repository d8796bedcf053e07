"""Writes followed results as a click log, in the form that trainings read.

Signs results, so that only results that were returned count as clicked.
"""

import fcntl
import hmac
import json
import os
import secrets
import threading
import time
import unicodedata
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import OrderedDict
from hashlib import sha256
from pathlib import Path
from types import TracebackType

from keras_lstm_dssm.data.click_lines import Pair, click_line, parse_line
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import check_writable, flush_to_disk

LIFETIME_SECONDS = 86_400
"""A result can be followed for a day after the search."""

_REMEMBERED = 100_000
_SIGNATURE_BYTES = sha256().digest_size


class TokenError(ValueError):
    """Raised if a token is not one of this server, or is too old."""


class ClickTokens:
    """Makes a token for each result of a search, and reads it once.

    A token holds the query and the title, signed with a secret of this
    process: a browser can neither change them nor make up others, and the
    server stores nothing. The same search counts a title once.

    Args:
        lifetime: Seconds after which a token is too old.

    Example:
        >>> tokens = ClickTokens()
        >>> token = tokens.issue(tokens.new_search(), "bolt", "hex bolt")
        >>> tokens.redeem(token)
        Pair(query='bolt', document='hex bolt')
        >>> tokens.redeem(token)  # None: counted already
    """

    def __init__(self, lifetime: float = LIFETIME_SECONDS) -> None:
        self._secret = secrets.token_bytes(32)
        self._lifetime = lifetime
        self._lock = threading.Lock()
        self._redeemed: OrderedDict[bytes, None] = OrderedDict()

    @staticmethod
    def new_search() -> str:
        """Returns the random name of a search."""
        return secrets.token_urlsafe(9)

    def issue(self, search: str, query: str, title: str) -> str:
        """Returns the token of a result.

        Args:
            search: The name of the search, from `new_search`.
            query: The query.
            title: The title of the result.
        """
        payload = json.dumps([search, time.time(), query, title]).encode()
        return urlsafe_b64encode(self._signature(payload) + payload).decode()

    def redeem(self, token: str) -> Pair | None:
        """Returns the query and the title of a token, the first time.

        Raises:
            TokenError: The token is not one of this process, or too old.
        """
        try:
            raw = urlsafe_b64decode(token.encode("ascii"))
        except ValueError as error:
            raise TokenError("not a result of this server") from error
        signature, payload = raw[:_SIGNATURE_BYTES], raw[_SIGNATURE_BYTES:]
        if not hmac.compare_digest(signature, self._signature(payload)):
            raise TokenError("not a result of this server; search again")
        _, issued, query, title = json.loads(payload)
        if time.time() - issued > self._lifetime:
            raise TokenError("the search is too old; search again")
        with self._lock:
            if signature in self._redeemed:
                return None
            self._redeemed[signature] = None
            if len(self._redeemed) > _REMEMBERED:
                self._redeemed.popitem(last=False)
        return Pair(query, title)

    def _signature(self, payload: bytes) -> bytes:
        return hmac.digest(self._secret, payload, "sha256")


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
