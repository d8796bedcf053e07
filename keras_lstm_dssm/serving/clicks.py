"""Writes the click logs of the search page.

Each result on the page has a signed token, which a click sends back. At most
one click is logged for each token. Logs identify no client and no user.

`ClickWriter` appends pairs of a query and a title. `UbiWriter` writes searches
and clicks as User Behavior Insights (UBI), version 1.3, for `lstm-dssm-prepare
--ubi` and for dashboards of search engines.
"""

import fcntl
import hmac
import itertools
import json
import os
import secrets
import stat
import threading
import time
import uuid
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from hashlib import sha256
from pathlib import Path
from typing import Any

from keras_lstm_dssm.data.click_log import Pair, click_line, parse_line
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import check_writable, flush_to_disk
from keras_lstm_dssm.plain_files import cleaned

UBI = "ubi:"
"""If `--click_log` begins with this prefix, the log has UBI's format."""

LIFETIME_SECONDS = 86_400
"""A click is logged if its search is at most this many seconds (a day) old."""

ROTATE_MB = 64
"""Maximum size of a click log in MiB. If the next line does not fit, the log is
renamed, and the line begins a new log."""

_SIGNATURE_BYTES = sha256().digest_size

_APPLICATION = "lstm-dssm-serve"
_LONGEST_ID = 256  # maximum length of a document id in UBI's schema


class TokenError(ValueError):
    """Raised for a token that is too old or from another server."""


class AppendedFile:
    """A locked file to append lines to; a full file is renamed and replaced."""

    def __init__(self, path: Path, rotate_mb: float = ROTATE_MB) -> None:
        check_writable(path)
        self._path = path
        self._max_bytes = int(rotate_mb * (1 << 20))
        self._file = self._open()

    def append(self, line: bytes, sync: bool = True) -> None:
        """Appends a line; after an error, no part of the line is in the file.

        With `sync`, the line is on the disk when the method returns.
        """
        end = os.fstat(self._file).st_size
        if end and end + len(line) > self._max_bytes:
            with suppress(FileNotFoundError):  # another program moved it
                os.rename(self._path, self._name_for_rotation())
        if self._is_renamed():
            full_file, self._file = self._file, self._open()
            os.fsync(full_file)
            os.close(full_file)
        end = os.fstat(self._file).st_size
        try:
            while line:
                line = line[os.write(self._file, line) :]
            if sync:
                os.fsync(self._file)
        except OSError:
            os.ftruncate(self._file, end)
            raise

    def _open(self) -> int:
        # If a user has moved the folder, the folder is made again.
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # Without O_NONBLOCK, opening a pipe or a device could wait.
        descriptor = os.open(
            self._path,
            os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK,
            0o600,
        )
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise InputError(
                    f"{self._path}: found a device or a pipe, expected a"
                    " regular file, so that clicks can be flushed to disk;"
                    " give --click_log another path"
                )
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise InputError(
                    f"{self._path}: another process writes clicks to this"
                    " file; give each server its own --click_log"
                ) from error
        except InputError:
            os.close(descriptor)
            raise
        _remove_partial_line(descriptor)
        flush_to_disk(self._path.absolute().parent)
        return descriptor

    def _name_for_rotation(self) -> Path:
        second = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
        fraction = time.time_ns() % 10**9
        return self._path.with_name(
            f"{self._path.stem}-{second}.{fraction:09}Z{self._path.suffix}"
        )

    def _is_renamed(self) -> bool:
        """Returns whether the open file was renamed or deleted."""
        try:
            return not os.path.samestat(
                os.stat(self._path), os.fstat(self._file)
            )
        except FileNotFoundError:
            return True

    def sync(self) -> None:
        """Flushes all lines to disk."""
        os.fsync(self._file)

    def close(self) -> None:
        """Closes the file; `append` then raises `OSError`."""
        os.close(self._file)


class ClickWriter:
    """Appends clicked results to a click log; threads may share the writer."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        rotate_mb: float = ROTATE_MB,
        lifetime: float = LIFETIME_SECONDS,
    ) -> None:
        self._log = AppendedFile(Path(path), rotate_mb)
        self._lifetime = lifetime
        self._secret = secrets.token_bytes(32)
        self._lock = threading.Lock()
        self._numbers = itertools.count()  # serial numbers of tokens
        # Serial numbers of tokens whose clicks are logged. A number is removed
        # `lifetime` seconds after the click, because its token has expired.
        self._clicked: set[int] = set()
        self._expiries: deque[tuple[float, int]] = deque()  # (time, number)

    def show(
        self,
        query: str,
        ids: Sequence[str],
        titles: Sequence[str],
        attributes: Mapping[str, Any] | None = None,
    ) -> list[str]:
        """Returns a token for each result of a search."""
        return [self.issue(query, title) for title in titles]

    def issue(self, query: str, title: str) -> str:
        """Returns a new token for one result."""
        number, now = next(self._numbers), time.monotonic()
        payload = json.dumps([number, now, query, title]).encode()
        return urlsafe_b64encode(self._signature(payload) + payload).decode()

    def write(self, token: str) -> bool:
        """Writes the clicked result of a token to disk.

        Returns `False` if a click with this token was written before, or if the
        log cannot represent the result. Raises `TokenError` for a wrong or old
        token, and `OSError` if writing fails.
        """
        number, pair = self._verified(token)
        line = self._line(pair)
        if line is None:
            return False
        with self._lock:
            if number in self._clicked:
                return False
            self._append(line)
            now = time.monotonic()
            while self._expiries and self._expiries[0][0] < now:
                self._clicked.remove(self._expiries.popleft()[1])
            self._clicked.add(number)
            self._expiries.append((now + self._lifetime, number))
        return True

    def _line(self, pair: Pair) -> bytes | None:
        """Returns a click as a line; `None` if no line can hold the click."""
        line = click_line(Pair(*map(cleaned, pair))).encode()
        is_click = isinstance(parse_line(line.rstrip(b"\n")), Pair)
        return line if is_click else None

    def _append(self, line: bytes) -> None:
        self._log.append(line)

    def _verified(self, token: str) -> tuple[int, Pair]:
        try:
            raw = urlsafe_b64decode(token.encode("ascii"))
        except ValueError as error:
            raise TokenError("not a result of this server") from error
        signature, payload = raw[:_SIGNATURE_BYTES], raw[_SIGNATURE_BYTES:]
        if not hmac.compare_digest(signature, self._signature(payload)):
            raise TokenError("not a result of this server; search again")
        number, issued, query, title = json.loads(payload)
        if time.monotonic() - issued > self._lifetime:
            raise TokenError("the search is too old; search again")
        return number, Pair(query, title)

    def _signature(self, payload: bytes) -> bytes:
        return hmac.digest(self._secret, payload, "sha256")

    def close(self) -> None:
        """Closes the file; `write` then raises `OSError`."""
        self._log.close()

    def __enter__(self) -> "ClickWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class UbiWriter(ClickWriter):
    """Appends searches to `queries.ndjson` and clicks to `events.ndjson`."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        rotate_mb: float = ROTATE_MB,
        lifetime: float = LIFETIME_SECONDS,
    ) -> None:
        Path(folder).mkdir(parents=True, exist_ok=True)
        self._queries = AppendedFile(Path(folder, "queries.ndjson"), rotate_mb)
        try:
            super().__init__(Path(folder, "events.ndjson"), rotate_mb, lifetime)
        except BaseException:
            self._queries.close()
            raise

    def show(
        self,
        query: str,
        ids: Sequence[str],
        titles: Sequence[str],
        attributes: Mapping[str, Any] | None = None,
    ) -> list[str]:
        """Logs a search unless the query is empty; returns a token per hit."""
        query = cleaned(query)
        query_id = str(uuid.uuid4()) if query else ""
        row = {
            "application": _APPLICATION,
            "query_id": query_id,
            "user_query": query,
            "timestamp": _now(),
            "query_attributes": dict(attributes or {}),
            "query_response_hit_ids": list(ids),
        }
        if query:
            with self._lock:
                self._queries.append(_encoded(row), sync=False)
        # In place of the title, each token has JSON, which `_line` reads.
        return [
            self.issue(query, json.dumps([query_id, document_id, ordinal]))
            for ordinal, document_id in enumerate(ids, 1)
        ]

    def _line(self, pair: Pair) -> bytes | None:
        query_id, document_id, ordinal = json.loads(pair.document)
        if not query_id or len(document_id) > _LONGEST_ID:
            return None
        return _encoded(
            {
                "application": _APPLICATION,
                "action_name": "click",
                "query_id": query_id,
                "timestamp": _now(),
                "event_attributes": {
                    "object": {"object_id": document_id},
                    "position": {"ordinal": ordinal},
                },
            }
        )

    def _append(self, line: bytes) -> None:
        # Searches are flushed first, so that each click on disk has its search.
        self._queries.sync()
        super()._append(line)

    def close(self) -> None:
        """Closes both files."""
        super().close()
        self._queries.close()


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")


def _encoded(row: Mapping[str, Any]) -> bytes:
    return json.dumps(row).encode() + b"\n"


def _remove_partial_line(descriptor: int) -> None:
    end = os.lseek(descriptor, 0, os.SEEK_END)
    position = end
    while position:
        start = max(0, position - 4096)
        block = os.pread(descriptor, position - start, start)
        if b"\n" in block:
            position = start + block.rindex(b"\n") + 1
            break
        position = start
    if position != end:
        os.ftruncate(descriptor, position)
