"""The flags of programs that ask a server with TLS or tokens."""

from typing import Any

from absl import flags

from keras_lstm_dssm.tools.program import Definers
from lstm_dssm_client.grpc_connection import tls_credentials
from lstm_dssm_client.token_file import read_token


def define_door_flags(define: Definers) -> None:
    """Define `--tls`, `--tls_ca`, `--tls_cert`, `--tls_key`, `--token_file`.

    Args:
        define: The functions of the program, from `definers`.
    """
    define.bool(
        "tls", False,
        "Encrypt the connection; the certificate of the server must be of a "
        "known authority. The three flags below set it, too.",
    )  # fmt: skip
    define.string(
        "tls_ca", None,
        "Authorities in PEM that may have signed the server's certificate, or "
        "this certificate itself.",
    )  # fmt: skip
    define.string(
        "tls_cert", None,
        "Our own certificate in PEM, for a server that wants one.",
    )  # fmt: skip
    define.string("tls_key", None, "The private key of --tls_cert in PEM.")
    define.string(
        "token_file", None,
        "File whose first token is sent with each request, as that of "
        "lstm-dssm-serve --token_file.",
    )  # fmt: skip


def door_options(values: flags.FlagValues) -> dict[str, Any]:
    """Return the arguments `credentials` and `token` of a `Client`.

    Args:
        values: The program's flags.

    Raises:
        InputError: A file cannot be read, or is no such file.
    """
    files = (values.tls_ca, values.tls_cert, values.tls_key)
    return {
        "credentials": (
            tls_credentials(*files) if values.tls or any(files) else None
        ),
        "token": read_token(values.token_file) if values.token_file else None,
    }
