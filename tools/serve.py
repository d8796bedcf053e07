"""Serves exported models over gRPC, with TF Serving's own services.

For trials and tests on one machine; the README that lies beside exported
models has the command line of TF Serving itself. Versions exported while it
runs are loaded, warmed up and served from then on; models.config may give
them policies and labels. SIGINT (ctrl-c) and SIGTERM end it when the requests
in flight are done.

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

from absl import flags

from keras_lstm_dssm.serving.server.prediction_server import PredictionServer
from keras_lstm_dssm.tools.program import new_flags, program

FLAGS = new_flags()
_MODELS = flags.DEFINE_string(
    "models", None, "Exported models.", flag_values=FLAGS
)
_PORT = flags.DEFINE_integer(
    "port", 8500, "Port; 0 takes a free one.", 0, 65535, flag_values=FLAGS
)
_HOST = flags.DEFINE_string(
    "host", "127.0.0.1", "Address to listen on; 0.0.0.0 for every network.",
    flag_values=FLAGS,
)  # fmt: skip
_VERSIONS = flags.DEFINE_integer(
    "versions", 1, "How many of each model's newest versions to load.", 1,
    flag_values=FLAGS,
)  # fmt: skip
_MAX_MESSAGE_MB = flags.DEFINE_integer(
    "max_message_mb", 2047, "Largest request and reply, in MiB.", 1, 2047,
    flag_values=FLAGS,
)  # fmt: skip
_POLL_SECONDS = flags.DEFINE_float(
    "poll_seconds", 1.0, "How often to look for new versions; 0 for never.",
    0, flag_values=FLAGS,
)  # fmt: skip
_GRACE_SECONDS = flags.DEFINE_float(
    "grace_seconds", 10.0, "How long requests may run on after a signal.",
    0, flag_values=FLAGS,
)  # fmt: skip


def main(_: list[str]) -> None:
    """Serves until a signal comes."""
    # What is imported by now is no garbage; looking through it when a
    # version is dropped would hold all requests up for a quarter second.
    gc.freeze()
    ended = threading.Event()
    before = {
        number: signal.signal(number, lambda *_: ended.set())
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
                poll_seconds=_POLL_SECONDS.value,
                grace_seconds=_GRACE_SECONDS.value,
            ) as server,
            _told(),
        ):
            for name in server.models.names():
                for version in server.models.versions(name):
                    print(f"{name} version {version}")
            # Whoever waits for this line reads it through a pipe.
            print(f"serving on {server.address}", flush=True)
            ended.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _told() -> Iterator[None]:
    """Tells what is loaded and unloaded, on standard error."""
    log = logging.getLogger("keras_lstm_dssm")
    handler = logging.StreamHandler()
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False  # else others that log would print it again
    try:
        yield
    finally:
        log.propagate = True
        log.setLevel(logging.NOTSET)
        log.removeHandler(handler)


run = program(main, FLAGS, __doc__, required=["models", "host"])

if __name__ == "__main__":
    sys.exit(run())
