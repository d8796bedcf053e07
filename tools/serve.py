"""Serve exported models over gRPC, with TF Serving's own services.

The server is meant for trials and tests on one machine; the README with the
exported models has the command line of TF Serving itself. Versions exported
while it runs are loaded, warmed up and then served; models.config can set
version policies and labels. SIGINT (ctrl-c) and SIGTERM stop the server when
the running requests have ended.

Example:
  lstm-dssm-serve --models=MODELS --port=8500
"""

import gc
import logging
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from keras_lstm_dssm.export.warmup import BATCH_SIZES
from keras_lstm_dssm.serving import PredictionServer
from keras_lstm_dssm.tools.program import definers, new_flags, program

FLAGS = new_flags()
define = definers(FLAGS)
_MODELS = define.string("models", None, "Folder that lstm-dssm-export wrote.")
_PORT = define.integer("port", 8500, "Port; 0 takes a free one.", 0, 65535)
_HOST = define.string(
    "host", "127.0.0.1", "Address to listen on; 0.0.0.0 for all interfaces."
)
_VERSIONS = define.integer(
    "versions", 1,
    "Number of a model's newest versions to load, if models.config has no "
    "version policy for it.",
    1,
)  # fmt: skip
_MAX_MESSAGE_MB = define.integer(
    "max_message_mb", 64, "Largest request and largest reply, in MiB.", 1, 2047
)
_MAX_ROWS = define.integer(
    "max_rows", BATCH_SIZES[-1],
    "Largest number of rows in a request, as max_batch_size in "
    "batching.config.", 1,
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
            ) as server,
            _logged(),
        ):
            for name in server.models.names():
                for version in server.models.versions(name):
                    print(f"{name} version {version}")
            # Flushed, because tests and scripts wait for it at a pipe.
            print(f"serving on {server.address}", flush=True)
            stopped.wait()
    finally:
        for number, handler in old_handlers.items():
            signal.signal(number, handler)


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
