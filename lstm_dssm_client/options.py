"""Checks arguments of the clients, and reads access tokens from files.

A token is a secret that a client sends in a header of each request.
"""

import ipaddress
import os
import re
from pathlib import Path

from lstm_dssm_client.errors import InputError

# Longest timeout, in seconds. gRPC takes a huge timeout for a deadline that has
# already passed.
_DAY = 86_400


def checked_timeout(timeout: float) -> float:
    """Checks and returns the timeout of a request, in seconds."""
    if not 0 < timeout <= _DAY:
        raise InputError(
            f"timeout is {timeout}; expected seconds above 0, {_DAY:,} at most"
        )
    return timeout


def message_bytes(max_message_mb: int) -> int:
    """Checks the maximum size of a message in MiB and returns it in bytes."""
    if not 1 <= max_message_mb <= 2047:
        raise InputError(
            f"max_message_mb is {max_message_mb}; expected 1 to 2047"
        )
    return max_message_mb << 20


def check_certificate_and_key(
    certificate: str | os.PathLike[str] | None,
    key: str | os.PathLike[str] | None,
) -> None:
    """Checks that a client has both a certificate and its key, or neither."""
    if (certificate is None) != (key is None):
        raise InputError(
            "found a client's certificate or key alone: give both or neither"
        )


def is_loopback(host: str) -> bool:
    """Returns whether a host name or address is this machine's loopback."""
    host = host.removeprefix("[").removesuffix("]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def token_headers(
    token: str | None, host: str, encrypted: bool
) -> list[tuple[str, str]]:
    """Returns the HTTP or gRPC header of a token; no header without a token."""
    if token is None:
        return []
    if not token.isascii() or not token.isprintable() or " " in token:
        raise InputError(
            "the token has a space, or a character that is not printable"
            " ASCII; expected a token of the server's --token_file"
        )
    if not encrypted and not is_loopback(host):
        raise InputError(
            f"the token would be sent to {host} without encryption: give"
            " credentials (--tls_ca), too"
        )
    return [("authorization", f"Bearer {token}")]


_TOKEN = re.compile(r"[!-~]{16,512}")  # printable ASCII, without spaces
_EXPECTED = (
    "expected one token a line, each of 16 to 512 printable ASCII characters"
    " without spaces, such as the output of: openssl rand -hex 32"
)
_MAX_BYTES = 1 << 20


def read_token(path: str | os.PathLike[str]) -> str:
    """Reads the first token of a file, for a client.

    Raises:
        InputError: The file cannot be read, has no token, or has an invalid
            token.

    Example:
    >>> _ = Path("tokens.txt").write_text("0123456789abcdef0123456789abcdef")
    >>> read_token("tokens.txt")
    '0123456789abcdef0123456789abcdef'
    """
    return read_tokens(path)[0]


def read_tokens(path: str | os.PathLike[str]) -> list[str]:
    """Reads a file with a token in each line; skips blank and `#` lines."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; {_EXPECTED}") from error
    if len(data) > _MAX_BYTES:
        raise InputError(f"{path}: found more than a megabyte; {_EXPECTED}")
    tokens = []
    for number, line in enumerate(data.decode("latin-1").splitlines(), 1):
        token = line.strip()
        if not token or token.startswith("#"):
            continue
        if not _TOKEN.fullmatch(token):  # the error must not show the token
            raise InputError(
                f"{path}:{number}: found {len(token)} characters that are no"
                f" token; {_EXPECTED}"
            )
        tokens.append(token)
    if not tokens:
        raise InputError(f"{path}: found no token; {_EXPECTED}")
    return tokens
