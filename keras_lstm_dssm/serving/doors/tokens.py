"""Tokens of a file, which requests must have, compared in constant time."""

import base64
import binascii
import hashlib
import hmac
import logging
import os
import threading
from pathlib import Path
from typing import NamedTuple

from keras_lstm_dssm.errors import InputError
from lstm_dssm_client.token_file import read_tokens

_LOG = logging.getLogger(__name__)


class _Read(NamedTuple):
    """What was read, and the state of the file when it was read."""

    state: tuple[int, ...]
    digests: list[bytes]


class TokenFile:
    """Checks the tokens of requests against a file; threads may share it.

    The file has one token a line; blank lines and lines that begin with `#`
    are left out. It is read again when it changes: to replace a token, write
    both, move the clients to the new one, and remove the old one. While the
    changed file cannot be read, or has no token, the last tokens apply, and
    the reason is logged once.

    Args:
        path: The file.

    Raises:
        InputError: The file cannot be read, or has a line that is no token,
            or no token at all.

    Example:
        >>> TokenFile("tokens.txt").allows("Bearer 2ba5f0c1d0e94c1f")
        True
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._lock = threading.Lock()
        self._logged = ""
        self._read = _Read(self._state(), _digests(self._path))

    def allows(self, authorization: str | bytes | None) -> bool:
        """Returns whether the header `authorization` of a request has a token.

        The time does not depend on how much of a token is right: digests of
        the same length are compared, by `hmac.compare_digest`, with each of
        the tokens.

        Args:
            authorization: The header's value: `Bearer TOKEN`; or `Basic` with
                any user name and the token as the password, which a browser
                sends after it has asked for them. None without the header.
        """
        self._refresh()
        token = _token_of(authorization)
        digest = hashlib.sha256(token).digest()
        allowed = False
        for known in self._read.digests:
            allowed |= hmac.compare_digest(digest, known)
        return allowed and bool(token)

    def _state(self) -> tuple[int, ...]:
        found = os.stat(self._path)
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _refresh(self) -> None:
        try:
            state = self._state()
            if state == self._read.state:
                return
            with self._lock:
                if state != self._read.state:
                    self._read = _Read(state, _digests(self._path))
                    self._logged = ""
                    _LOG.info("%s: read again", self._path)
        except (InputError, OSError) as error:
            if str(error) != self._logged:  # once, not for every request
                self._logged = str(error)
                _LOG.warning("%s; the last tokens still apply", error)


def _digests(path: Path) -> list[bytes]:
    return [hashlib.sha256(t.encode()).digest() for t in read_tokens(path)]


def _token_of(authorization: str | bytes | None) -> bytes:
    """Returns the token in a header's value, empty if there is none."""
    if not authorization:
        return b""
    if isinstance(authorization, str):
        authorization = authorization.encode("utf-8", "replace")
    scheme, _, value = authorization.partition(b" ")
    value = value.strip()
    if scheme.lower() == b"bearer":
        return value
    if scheme.lower() == b"basic":
        try:
            return base64.b64decode(value, validate=True).partition(b":")[2]
        except binascii.Error:
            return b""
    return b""
