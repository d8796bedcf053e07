r"""Serve exported models over gRPC and HTTP, with TF Serving's services.

The server is meant for trials and tests on one machine; the README with the
exported models has the command line of TF Serving itself. Versions exported
while it runs are loaded, warmed up and then served; models.config can set
version policies and labels. SIGINT (ctrl-c) and SIGTERM stop the server when
the running requests have ended.

With --http_port the server also has TF Serving's REST API, metrics and a page
for searching at / (docs/http.md). This needs
pip install "keras-lstm-dssm[http]".

Only this machine can connect, unless --host names another address; then TLS,
and tokens or certificates of clients, are required (docs/secure.md).

Example:
  lstm-dssm-serve --models=MODELS --port=8500
  lstm-dssm-serve --models=MODELS --http_port=8501 --click_log=clicks.tsv
  lstm-dssm-serve --models=MODELS --host=0.0.0.0 --tls_cert=server.crt \
      --tls_key=server.key --token_file=tokens.txt
"""

import gc
import logging
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.serving import PredictionServer
from keras_lstm_dssm.serving.doors import ServerTLS, TokenFile
from keras_lstm_dssm.serving.http.serve_http import served_over_http
from keras_lstm_dssm.serving.server.bounds import (
    Bounds,
)
from keras_lstm_dssm.settings.choices import (
    BATCH_SIZES,
    MAX_MESSAGE_MB,
    MAX_REQUESTS,
)
from keras_lstm_dssm.tools.program import definers, new_flags, program

FLAGS = new_flags()
define = definers(FLAGS)
_MODELS = define.string("models", None, "Folder that lstm-dssm-export wrote.")
_PORT = define.integer("port", 8500, "Port; 0 takes a free one.", 0, 65535)
_HOST = define.string(
    "host", "127.0.0.1", "Address to listen on; 0.0.0.0 for all interfaces."
)
_HTTP_PORT = define.integer(
    "http_port", None,
    "Port for HTTP: TF Serving's REST API, metrics and a page for searching; "
    "0 takes a free one. By default there is none.", 0, 65535,
)  # fmt: skip
_CLICK_LOG = define.string(
    "click_log", None,
    "File to which results that are followed on the page are appended, query "
    "TAB title.",
)  # fmt: skip
_TITLES = define.string(
    "titles", None,
    "File of the titles that the page shows for ids, id TAB title a line, if "
    "the retriever returns ids.",
)  # fmt: skip
_VERSIONS = define.integer(
    "versions", 1,
    "Number of a model's newest versions to load, if models.config has no "
    "version policy for it.",
    1,
)  # fmt: skip
_MAX_MESSAGE_MB = define.integer(
    "max_message_mb", MAX_MESSAGE_MB, "Largest request, in MiB.", 1, 2047
)
_MAX_ROWS = define.integer(
    "max_rows", BATCH_SIZES[-1],
    "Largest number of rows in a request, as max_batch_size in "
    "batching.config.", 1,
)  # fmt: skip
_MAX_TEXT_KB = define.integer(
    "max_text_kb", Bounds().max_text_kb, "Largest text in a request, in KiB.", 1
)
_MAX_K = define.integer(
    "max_k", Bounds().max_k,
    "Largest number of results for a text that a request may ask for. The "
    "retriever's own limit is that of lstm-dssm-export --max_k.", 1,
)  # fmt: skip
_MAX_REQUESTS = define.integer(
    "max_requests", MAX_REQUESTS,
    "Largest number of requests at the same time, of each protocol; others "
    "are refused (RESOURCE_EXHAUSTED, 429).", 1,
)  # fmt: skip
_TLS_CERT = define.string(
    "tls_cert", None,
    "Certificate of the server in PEM, with those of intermediate "
    "authorities; connections are then encrypted.",
)  # fmt: skip
_TLS_KEY = define.string(
    "tls_key", None, "Private key of --tls_cert in PEM, without a password."
)
_CLIENT_CA = define.string(
    "client_ca", None,
    "Authorities in PEM whose certificates clients must have.",
)  # fmt: skip
_TOKEN_FILE = define.string(
    "token_file", None,
    "File of tokens, one a line, of which each request must have one; read "
    "again when it changes.",
)  # fmt: skip
_INSECURE = define.bool(
    "insecure", False,
    "Listen to other machines even without TLS and --token_file or "
    "--client_ca.",
)  # fmt: skip
_VERIFY = define.bool(
    "verify", False,
    "Load only versions whose files agree with their MANIFEST.sha256.",
)  # fmt: skip
_POLL_SECONDS = define.float(
    "poll_seconds", 1.0,
    "Seconds between checks for new versions; 0 checks only at the start.",
    0,
)  # fmt: skip
_GRACE_SECONDS = define.float(
    "grace_seconds", 10.0,
    "Seconds that running requests may still take after SIGINT or SIGTERM.", 0,
)  # fmt: skip


def main(_: list[str]) -> None:
    """Serves until a signal arrives."""
    # Imported modules are never garbage. Without this, the collection after
    # an unloaded version would scan them and stop all requests for 0.25 s.
    gc.freeze()
    tls = _server_tls()
    tokens = TokenFile(_TOKEN_FILE.value) if _TOKEN_FILE.value else None
    stopped = threading.Event()
    old_handlers = {
        number: signal.signal(number, lambda *_: stopped.set())
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        with (
            PredictionServer(
                _MODELS.value,
                port=_PORT.value,
                host=_HOST.value,
                versions=_VERSIONS.value,
                max_message_mb=_MAX_MESSAGE_MB.value,
                max_rows=_MAX_ROWS.value,
                poll_seconds=_POLL_SECONDS.value,
                grace_seconds=_GRACE_SECONDS.value,
                max_text_kb=_MAX_TEXT_KB.value,
                max_k=_MAX_K.value,
                max_requests=_MAX_REQUESTS.value,
                tls=tls,
                tokens=tokens,
                insecure=_INSECURE.value,
                verify=_VERIFY.value,
                metrics=_HTTP_PORT.value is not None,
            ) as server,
            _logged(),
            _served_over_http(server, tls, tokens) as url,
        ):
            for name in server.models.names():
                for version in server.models.versions(name):
                    print(f"{name} version {version}")
            if url:
                print(f"HTTP on {url}/")
            # Flushed, because tests and scripts wait for it at a pipe.
            print(f"serving on {server.address}", flush=True)
            stopped.wait()
    finally:
        for number, handler in old_handlers.items():
            signal.signal(number, handler)


def _server_tls() -> ServerTLS | None:
    """Returns the certificate that the flags name, if they name one."""
    if not (_TLS_CERT.value or _TLS_KEY.value or _CLIENT_CA.value):
        return None
    if not (_TLS_CERT.value and _TLS_KEY.value):
        raise InputError(
            "TLS needs both --tls_cert and --tls_key; --client_ca needs them,"
            " too"
        )
    return ServerTLS(_TLS_CERT.value, _TLS_KEY.value, _CLIENT_CA.value)


@contextmanager
def _served_over_http(
    server: PredictionServer, tls: ServerTLS | None, tokens: TokenFile | None
) -> Iterator[str | None]:
    """Serves over HTTP, too, if the flags say so; yields the URL."""
    if _HTTP_PORT.value is None:
        for flag in (_CLICK_LOG, _TITLES):
            if flag.value is not None:
                raise InputError(
                    f"--{flag.name} is for the page: give --http_port, too"
                )
        yield None
        return
    with served_over_http(
        server,
        port=_HTTP_PORT.value,
        host=_HOST.value,
        max_requests=_MAX_REQUESTS.value,
        grace_seconds=_GRACE_SECONDS.value,
        tls=tls,
        tokens=tokens,
        insecure=_INSECURE.value,
        titles=_TITLES.value,
        click_log=_CLICK_LOG.value,
    ) as url:
        yield url


@contextmanager
def _logged() -> Iterator[None]:
    """Logs loaded and unloaded versions to standard error."""
    log = logging.getLogger("keras_lstm_dssm")
    handler = logging.StreamHandler()
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False  # the root logger would print it again
    try:
        yield
    finally:
        log.propagate = True
        log.setLevel(logging.NOTSET)
        log.removeHandler(handler)


run = program(main, FLAGS, __doc__, required=["models", "host"])

if __name__ == "__main__":
    sys.exit(run())
