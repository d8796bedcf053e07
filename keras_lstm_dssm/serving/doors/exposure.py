"""Refuses to listen to a network without protection."""

from lstm_dssm_client.connection_options import is_loopback
from lstm_dssm_client.errors import InputError


def check_exposure(
    host: str, tls: bool, identifies_clients: bool, insecure: bool
) -> None:
    """Checks that a server which others can reach has TLS and knows clients.

    Args:
        host: The address to listen on.
        tls: Whether connections are encrypted.
        identifies_clients: Whether clients need a token or a certificate.
        insecure: Whether to listen without them all the same.

    Raises:
        InputError: Other machines can reach the address, and one of the two
            is missing.
    """
    if insecure or is_loopback(host) or (tls and identifies_clients):
        return
    missing = [
        *([] if tls else ["TLS (--tls_cert and --tls_key)"]),
        *([] if identifies_clients else ["--token_file or --client_ca"]),
    ]
    raise InputError(
        f"host {host}: other machines can reach this address, and "
        f"{' and '.join(missing)} is missing: anyone could send requests or"
        " read them; give it, listen on 127.0.0.1, or say --insecure where"
        " the network is protected by other means"
    )
