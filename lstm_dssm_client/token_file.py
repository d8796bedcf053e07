"""Reads files of tokens: secrets that a server asks its clients for."""

import os
import re
from pathlib import Path

from lstm_dssm_client.errors import InputError

_TOKEN = re.compile(r"[!-~]{16,512}")  # printable ASCII, without spaces
_EXPECTED = (
    "expected one token a line, each of 16 to 512 printable ASCII characters"
    " without spaces, such as the output of: openssl rand -hex 32"
)
_MAX_BYTES = 1 << 20


def read_token(path: str | os.PathLike[str]) -> str:
    """Reads the first token of a file, for a client.

    Raises:
        InputError: See `read_tokens`.
    """
    return read_tokens(path)[0]


def read_tokens(path: str | os.PathLike[str]) -> list[str]:
    """Reads all tokens that a server accepts, from a file.

    Blank lines and lines that begin with `#` are left out.

    Args:
        path: The file, with one token a line.

    Raises:
        InputError: The file cannot be read, or has a line that is no token,
            or no token at all.
    """
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
        if not _TOKEN.fullmatch(token):  # it is a secret: it is not shown
            raise InputError(
                f"{path}:{number}: found {len(token)} characters that are no"
                f" token; {_EXPECTED}"
            )
        tokens.append(token)
    if not tokens:
        raise InputError(f"{path}: found no token; {_EXPECTED}")
    return tokens
