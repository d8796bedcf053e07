r"""Serve exported models over gRPC and HTTP, with TF Serving's services.

The server is meant for trials and tests on one machine; the README of the
exported models has the command line of TF Serving itself. New versions are
loaded, warmed up and served while the server runs; a file models.config in the
folder of --models can set version policies and labels. SIGINT (ctrl-c) and
SIGTERM stop the server when the running requests have ended.

With --http_port the server also has TF Serving's REST API, metrics and a page
for searching at / (docs/local_server.md). This needs
pip install "keras-lstm-dssm[http]".

By default only this machine can connect. If other machines can reach the
address in --host, the server requires TLS, and also tokens or certificates of
clients (docs/security.md). --insecure switches these requirements off.

Example:
  lstm-dssm-serve --models=MODELS --port=8500
  lstm-dssm-serve --models=MODELS --http_port=8501 --click_log=clicks.tsv
  lstm-dssm-serve --models=MODELS --host=0.0.0.0 --tls_cert=server.crt \
      --tls_key=server.key --token_file=tokens.txt
"""

import gc
import logging
import os
import resource
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from absl import app

from lstm_dssm_programs import load_package
from keras_lstm_dssm.command_line import Program
from keras_lstm_dssm.errors import InputError, check_installed
from keras_lstm_dssm.settings.programs import ServerBounds
from keras_lstm_dssm.tools.settings_flags import define_settings, flag_names

if TYPE_CHECKING:
    from keras_lstm_dssm.serving.security import ServerTLS

program = Program(__doc__, required=["models", "host"])
FLAGS = program.flags
program.string("models", None, "Folder that lstm-dssm-export wrote.")
program.integer("port", 8500, "Port for gRPC; 0: any free port.", 0, 65535)
program.string("host", "127.0.0.1", "Address to listen on (0.0.0.0: all).")
program.integer(
    "http_port", None,
    "Port for HTTP: TF Serving's REST API, metrics and a page for searching; "
    "0 takes a free port. By default the server has no HTTP.", 0, 65535,
)  # fmt: skip
program.string(
    "click_log", None,
    "File to which the search page of --http_port appends each result that a "
    "user clicks, as query TAB title; or ubi:FOLDER for searches and clicks in "
    "the form of User Behavior Insights (docs/data.md).",
)  # fmt: skip
program.integer(
    "versions", 1,
    "Number of newest versions to load of each model. If models.config chooses "
    "the versions of a model, this number does not apply to the model.", 1,
)  # fmt: skip
program.define_set("A bound on requests")
define_settings(program, {"": ServerBounds}, named=["protocols"], defaults=True)
program.string(
    "tls_cert", None,
    "Certificate of the server in PEM, with the certificates of intermediate "
    "authorities; connections are then encrypted.",
)  # fmt: skip
program.string("tls_key", None, "Private key of --tls_cert, without password.")
program.string(
    "client_ca", None,
    "PEM file of authorities; a client must have a certificate that one of "
    "them issued.",
)  # fmt: skip
program.string(
    "token_file", None,
    "File of tokens, one a line; each request, except health checks, must have "
    "one of them. The file is read again when it changes.",
)  # fmt: skip
program.bool(
    "insecure", False,
    "Allow connections from other machines even if --tls_cert is missing, or "
    "if --token_file and --client_ca are both missing.",
)  # fmt: skip
program.bool(
    "verify", False, "Load only versions that agree with their MANIFEST.sha256."
)
program.float(
    "poll_seconds", 1.0,
    "Seconds between checks for new versions; 0 checks only at the start.", 0,
)  # fmt: skip
program.float(
    "grace_seconds", 10.0,
    "Seconds that running requests may still take after SIGINT or SIGTERM.", 0,
)  # fmt: skip


@program.main
def main(_: list[str]) -> None:
    """Serves until a signal arrives."""
    if FLAGS.http_port is not None:  # before the models are read
        check_installed("uvicorn", "http")
    load_package()
    from keras_lstm_dssm.serving.limits import Bounds
    from keras_lstm_dssm.serving.prediction_server import PredictionServer
    from keras_lstm_dssm.serving.security import Security, TokenFile

    # Garbage is collected after a version is unloaded. Without `freeze`, the
    # collection would scan all imported modules, and stop all requests for
    # 0.25 s.
    gc.freeze()
    # Each connection is an open file. The soft limit of open files is often
    # 1,024, so it is raised to the hard limit.
    maximum = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with suppress(ValueError):  # the hard limit of macOS is infinite
        resource.setrlimit(resource.RLIMIT_NOFILE, (maximum, maximum))
    if FLAGS.http_port is None:
        program.check_unused(
            ["click_log"], "is for the search page: give --http_port, too"
        )
    security = Security(
        _server_tls(),
        TokenFile(FLAGS.token_file) if FLAGS.token_file else None,
        FLAGS.insecure,
    )
    stopped = threading.Event()
    old_handlers = {
        number: signal.signal(number, lambda *_: stopped.set())
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        with (
            PredictionServer(
                FLAGS.models,
                port=FLAGS.port,
                host=FLAGS.host,
                http_port=FLAGS.http_port,
                versions=FLAGS.versions,
                poll_seconds=FLAGS.poll_seconds,
                grace_seconds=FLAGS.grace_seconds,
                verify=FLAGS.verify,
                bounds=Bounds(
                    **{
                        name: program.flag(name).value
                        for name in flag_names([ServerBounds])
                    }
                ),
                security=security,
                click_log=FLAGS.click_log,
            ) as server,
            _versions_logged(),
        ):
            for name in server.models.names():
                for version in server.models.versions(name):
                    print(f"{name} version {version}")
            if server.http_address:
                print(f"HTTP on {server.http_address}/")
            # Flushed, because scripts wait for this line.
            print(f"serving on {server.address}", flush=True)
            stopped.wait()
    finally:
        for number, handler in old_handlers.items():
            signal.signal(number, handler)
    if server.unfinished:
        # A normal exit would wait for the threads of these requests.
        print(
            f"{server.unfinished} requests had not ended after "
            f"{FLAGS.grace_seconds:g} seconds, and were aborted",
            file=sys.stderr,
            flush=True,
        )
        sys.stdout.flush()
        os._exit(0)


def _server_tls() -> "ServerTLS | None":
    from keras_lstm_dssm.serving.security import ServerTLS

    if not (FLAGS.tls_cert or FLAGS.tls_key or FLAGS.client_ca):
        return None
    if not (FLAGS.tls_cert and FLAGS.tls_key):
        raise InputError(
            "TLS needs both --tls_cert and --tls_key; --client_ca needs them,"
            " too"
        )
    return ServerTLS(FLAGS.tls_cert, FLAGS.tls_key, FLAGS.client_ca)


@contextmanager
def _versions_logged() -> Iterator[None]:
    log = logging.getLogger("keras_lstm_dssm")
    handler = logging.StreamHandler()
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False  # the root logger would print each line again
    try:
        yield
    finally:
        log.propagate = True
        log.setLevel(logging.NOTSET)
        log.removeHandler(handler)


if __name__ == "__main__":
    app.run(main, flags_parser=program.parse)
