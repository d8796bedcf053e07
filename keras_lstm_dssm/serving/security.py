"""TLS, client certificates and tokens of a server.

If other machines can reach the server, `Security` requires TLS, and also either
tokens or client certificates, unless `insecure` is true.
"""

import base64
import binascii
import hashlib
import hmac
import logging
import os
import re
import ssl
import stat
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import grpc

from keras_lstm_dssm.errors import InputError
from lstm_dssm_client.options import is_loopback, read_tokens

_LOG = logging.getLogger(__name__)

NO_TOKEN = (
    "the request has no valid token: send the header authorization: Bearer"
    " TOKEN, with a token of the server's --token_file"
)
"""The error message for a missing or wrong token, over gRPC and HTTP."""


class ServerTLS:
    """Paths of the TLS certificate and key of a server; checks the files.

    Args:
        certificate: File of the server's certificate, in PEM, followed by
            the certificates of intermediate authorities.
        key: File of the certificate's private key, in PEM, without a password.
        client_ca: File of authorities' certificates, in PEM. Clients need a
            certificate that one of these authorities has signed. Default:
            clients need no certificate.

    Raises:
        InputError: A file cannot be read or is not PEM, or the key has a
            password or belongs to another certificate.

    Example:
        >>> tls = ServerTLS("server.crt", "server.key")
        >>> server.add_secure_port("[::]:8500", tls.grpc_credentials())
    """

    def __init__(
        self,
        certificate: str | os.PathLike[str],
        key: str | os.PathLike[str],
        client_ca: str | os.PathLike[str] | None = None,
    ) -> None:
        self.certificate, self.key = Path(certificate), Path(key)
        self.client_ca = Path(client_ca) if client_ca else None
        self.ssl_context()

    def ssl_context(self) -> ssl.SSLContext:
        """Returns the server's `SSLContext`, for TLS 1.2 or newer."""
        for path in filter(None, (self.certificate, self.key, self.client_ca)):
            try:
                path.open("rb").close()
            except OSError as error:
                raise InputError(
                    f"{path}: {error.strerror}; expected a file in PEM"
                ) from error
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            # By default, OpenSSL asks for a key's password on the terminal.
            context.load_cert_chain(
                self.certificate, self.key, password=lambda: ""
            )
        except (ssl.SSLError, ValueError) as error:
            raise InputError(
                f"{self.certificate}, {self.key}: {_reason(error)}; expected"
                " a certificate and its private key, both in PEM and the key"
                " without a password"
            ) from error
        if self.client_ca is not None:
            try:
                context.load_verify_locations(self.client_ca)
            except ssl.SSLError as error:
                raise InputError(
                    f"{self.client_ca}: {_reason(error)}; expected the"
                    " certificates of authorities, in PEM"
                ) from error
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def grpc_credentials(self) -> Any:
        """Returns the certificates as `grpc.ServerCredentials`."""
        return grpc.ssl_server_credentials(
            [(self.key.read_bytes(), self.certificate.read_bytes())],
            root_certificates=self.client_ca and self.client_ca.read_bytes(),
            require_client_auth=self.client_ca is not None,
        )


def _reason(error: Exception) -> str:
    return getattr(error, "reason", None) or str(error) or "not PEM"


class _Tokens(NamedTuple):
    state: tuple[int, ...]  # time of the last change, size, inode
    digests: list[bytes]  # SHA-256 of each token


class TokenFile:
    """Checks requests' tokens against a file; threads may share the object.

    The file has a token in each line; blank lines and lines that begin with `#`
    are ignored. The file is read again when it changes. If the changed file
    cannot be read or has no token, the previous tokens apply, and a warning is
    logged once. To replace a token, add the new token, switch the clients, and
    remove the old token.

    Args:
        path: The file.

    Raises:
        InputError: The file cannot be read, other users can write to it, a
            line is not a token, or there is no token.

    Example:
        >>> TokenFile("tokens.txt").allows("Bearer 2ba5f0c1d0e94c1f")
        True
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._lock = threading.Lock()
        self._logged = ""
        self._tokens = _Tokens(self._state(), self._digests())
        if os.stat(self._path).st_mode & stat.S_IROTH:
            _LOG.warning(
                "%s: other users can read the tokens; run chmod 600 on it",
                self._path,
            )

    def allows(self, authorization: str | bytes | None) -> bool:
        """Returns whether the header `authorization` has a valid token.

        The header is `Bearer TOKEN`. Browsers may send `Basic`, with any user
        name and the token as the password.
        """
        self._refresh()
        token = _token_of(authorization)
        digest = hashlib.sha256(token).digest()
        allowed = False
        # All digests are compared, so that the time of the check does not
        # reveal which digest matches.
        for token_digest in self._tokens.digests:
            allowed |= hmac.compare_digest(digest, token_digest)
        return allowed and bool(token)

    def _state(self) -> tuple[int, ...]:
        stats = os.stat(self._path)
        return stats.st_mtime_ns, stats.st_size, stats.st_ino

    def _digests(self) -> list[bytes]:
        tokens = read_tokens(self._path)
        if os.stat(self._path).st_mode & stat.S_IWOTH:
            raise InputError(
                f"{self._path}: other users can write to this file, and so "
                "add a token of their own; run chmod 600 on it"
            )
        return [hashlib.sha256(token.encode()).digest() for token in tokens]

    def _refresh(self) -> None:
        try:
            state = self._state()
            if state == self._tokens.state:
                return
            with self._lock:
                if state != self._tokens.state:
                    self._tokens = _Tokens(state, self._digests())
                    self._logged = ""
                    _LOG.info("%s: read again", self._path)
        except (InputError, OSError) as error:
            if str(error) != self._logged:  # logs an error only once
                self._logged = str(error)
                _LOG.warning("%s; the previous tokens still apply", error)


def _token_of(authorization: str | bytes | None) -> bytes:
    """Returns the token in a header `authorization`, or b""."""
    if not authorization:
        return b""
    if isinstance(authorization, str):
        authorization = authorization.encode("utf-8", "replace")
    scheme, _, value = authorization.partition(b" ")
    value = value.strip()
    if scheme.lower() == b"bearer":
        return value
    if scheme.lower() == b"basic":
        with suppress(binascii.Error):
            return base64.b64decode(value, validate=True).partition(b":")[2]
    return b""


class Security(NamedTuple):
    """Encryption and authentication of a server.

    Attributes:
        tls: The server's certificate. Default: connections are not encrypted.
        tokens: The valid tokens of requests; by default requests need no token.
            Health checks never need a token.
        insecure: Whether the server may listen to other machines even if `tls`
            is missing, or if clients need neither token nor certificate.
            Default `False`.

    Example:
        >>> Security(ServerTLS("server.crt", "server.key"), TokenFile("tokens"))
    """

    tls: ServerTLS | None = None
    tokens: TokenFile | None = None
    insecure: bool = False

    def check(self, host: str) -> None:
        """Raises `InputError` for an unprotected server that is not local."""
        identifies_clients = self.tokens or (self.tls and self.tls.client_ca)
        if (
            self.insecure
            or is_loopback(host)
            or (self.tls and identifies_clients)
        ):
            return
        missing = [
            *([] if self.tls else ["TLS (--tls_cert and --tls_key)"]),
            *([] if identifies_clients else ["--token_file or --client_ca"]),
        ]
        raise InputError(
            f"host {host}: other machines can reach this address without "
            f"{' and without '.join(missing)}: anyone could send requests"
            " or read them; give these flags, listen on 127.0.0.1, or give"
            " --insecure if the network is protected by other means"
        )

    def admits(self, authorizations: Sequence[str | bytes]) -> bool:
        """Returns whether a request with these headers `authorization` may run.

        With `tokens`, a request needs exactly one header `authorization`.
        """
        if self.tokens is None:
            return True
        return len(authorizations) == 1 and self.tokens.allows(
            authorizations[0]
        )

    def allows_host(self, host: str, header: bytes) -> bool:
        """Returns whether an HTTP request may have the header `Host: HEADER`.

        The server listens on the address `host`. If `host` is local, the names
        of other machines are refused, to prevent DNS rebinding. In this attack,
        the name of a web site resolves to 127.0.0.1, and the site's page sends
        requests to this server. With tokens, TLS or `insecure`, any header is
        allowed.
        """
        if self.insecure or self.tokens or self.tls or not is_loopback(host):
            return True
        name = re.sub(r":\d*$", "", header.decode("latin-1"))
        return is_loopback(name.lower()) or name == host
