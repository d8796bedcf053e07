"""ServerTLS: the certificate of a server, for gRPC and for HTTP."""

import os
import ssl
from pathlib import Path
from typing import Any

import grpc

from keras_lstm_dssm.errors import InputError


class ServerTLS:
    """Holds the certificate and the key of a server, read once and checked.

    Args:
        certificate: File of the server's certificate, in PEM, followed by
            those of intermediate authorities.
        key: File of its private key, in PEM, without a password.
        client_ca: File of the authorities whose certificates clients must
            have; by default clients need no certificate.

    Raises:
        InputError: A file cannot be read or is not PEM, or the key belongs to
            another certificate.

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
        """Returns the settings of TLS for a server of Python, 1.2 or newer."""
        _check_readable(self.certificate, self.key, self.client_ca)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            # A key with a password would otherwise be asked for.
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
        """Returns the same as `grpc.ServerCredentials`."""
        return grpc.ssl_server_credentials(
            [(self.key.read_bytes(), self.certificate.read_bytes())],
            root_certificates=self.client_ca and self.client_ca.read_bytes(),
            require_client_auth=self.client_ca is not None,
        )

    def uvicorn_options(self) -> dict[str, Any]:
        """Returns the same as arguments of `uvicorn.Config`."""
        return {
            "ssl_certfile": str(self.certificate),
            "ssl_keyfile": str(self.key),
            "ssl_ca_certs": self.client_ca and str(self.client_ca),
            "ssl_cert_reqs": (
                ssl.CERT_REQUIRED if self.client_ca else ssl.CERT_NONE
            ),
        }


def _check_readable(*paths: Path | None) -> None:
    for path in paths:
        if path is not None:
            try:
                path.open("rb").close()
            except OSError as error:
                raise InputError(
                    f"{path}: {error.strerror}; expected a file in PEM"
                ) from error


def _reason(error: Exception) -> str:
    return getattr(error, "reason", None) or str(error) or "not PEM"
