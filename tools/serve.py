"""The program lstm-dssm-serve, which serves exported models.

Its help and its flags are in `tools/flags/serve.py`, which is imported first
and without TensorFlow.
"""

import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.serving.limits import Bounds
from keras_lstm_dssm.serving.prediction_server import Page, PredictionServer
from keras_lstm_dssm.serving.security import Security, ServerTLS, TokenFile
from keras_lstm_dssm.tools.flags.serve import COMMAND_LINE, FLAGS


def main(_: list[str]) -> None:
    """Serves until a signal arrives."""
    # Imported modules are never garbage. Without this, the collection after
    # an unloaded version would scan them and stop all requests for 0.25 s.
    gc.freeze()
    if FLAGS.http_port is None:
        for flag in (FLAGS["click_log"], FLAGS["titles"]):
            if flag.value is not None:
                raise InputError(
                    f"--{flag.name} is for the page: give --http_port, too"
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
                    FLAGS.max_rows,
                    FLAGS.max_text_kb,
                    FLAGS.max_k,
                    FLAGS.max_message_mb,
                    FLAGS.max_requests,
                ),
                security=security,
                page=Page(FLAGS.titles, FLAGS.click_log),
            ) as server,
            _logged(),
        ):
            for name in server.models.names():
                for version in server.models.versions(name):
                    print(f"{name} version {version}")
            if server.http_address:
                print(f"HTTP on {server.http_address}/")
            # Flushed, because tests and scripts wait for it at a pipe.
            print(f"serving on {server.address}", flush=True)
            stopped.wait()
    finally:
        for number, handler in old_handlers.items():
            signal.signal(number, handler)
    if server.unfinished:
        # Python would wait for their threads, which nothing can end.
        print(
            f"{server.unfinished} requests had not ended after "
            f"{FLAGS.grace_seconds:g} seconds, and were given up",
            file=sys.stderr,
            flush=True,
        )
        sys.stdout.flush()
        os._exit(0)


def _server_tls() -> ServerTLS | None:
    """Returns the certificate of --tls_cert; None without it."""
    if not (FLAGS.tls_cert or FLAGS.tls_key or FLAGS.client_ca):
        return None
    if not (FLAGS.tls_cert and FLAGS.tls_key):
        raise InputError(
            "TLS needs both --tls_cert and --tls_key; --client_ca needs them,"
            " too"
        )
    return ServerTLS(FLAGS.tls_cert, FLAGS.tls_key, FLAGS.client_ca)


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


run = COMMAND_LINE.program(main)

if __name__ == "__main__":
    sys.exit(run())
