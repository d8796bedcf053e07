"""Checks the arguments with which clients are made, such as `timeout`."""

import ipaddress

from lstm_dssm_client.errors import InputError

_DAY = 86_400


def checked_timeout(timeout: float) -> float:
    """Checks and returns the deadline of a request, in seconds.

    Raises:
        InputError: `timeout` is not above 0, or more than a day. (gRPC treats
            a number that is far too large as a deadline that has passed.)
    """
    if not 0 < timeout <= _DAY:
        raise InputError(
            f"timeout is {timeout}; expected seconds above 0, {_DAY:,} at most"
        )
    return timeout


def is_loopback(host: str) -> bool:
    """Returns whether a name or an address is that of this machine alone.

    Args:
        host: A name or an address, without the port; IPv6 also in brackets.
    """
    host = host.removeprefix("[").removesuffix("]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def token_headers(
    token: str | None, host: str, encrypted: bool
) -> list[tuple[str, str]]:
    """Returns the headers of a request that carry a token.

    Args:
        token: The token, or None.
        host: The server's name or address.
        encrypted: Whether the connection is.

    Raises:
        InputError: The token has characters that a header cannot hold, or
            would be sent to another machine in clear text.
    """
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
