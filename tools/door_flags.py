"""The flags of programs that ask a server with TLS or tokens."""

from keras_lstm_dssm.command_line import Definers


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
