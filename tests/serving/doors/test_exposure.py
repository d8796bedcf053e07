"""Addresses that others can reach need TLS, and know their clients."""

import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.serving.security import check_exposure

OPEN = ["0.0.0.0", "::", "[::]", "192.168.1.2", "db1", "example.org", ""]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "[::1]",
                                  "localhost"])  # fmt: skip
def test_this_machine_alone(host: str) -> None:
    check_exposure(host, tls=False, identifies_clients=False, insecure=False)


@pytest.mark.parametrize("host", OPEN)
def test_others(host: str) -> None:
    for tls, known, message in (
        (False, False, r"TLS \(--tls_cert and --tls_key\) and --token_file or"),
        (True, False, "address, and --token_file or --client_ca is missing"),
        (False, True, r"address, and TLS \(--tls_cert and --tls_key\) is miss"),
    ):
        with pytest.raises(InputError, match=message):
            check_exposure(host, tls, known, insecure=False)
        check_exposure(host, tls, known, insecure=True)
    check_exposure(host, True, True, insecure=False)
