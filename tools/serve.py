"""Serves exported models over gRPC, with TF Serving's own services.

For trials and tests on one machine; the README that lies beside exported
models has the command line of TF Serving itself. Versions exported while it
runs are served after a restart. SIGINT (ctrl-c) and SIGTERM end it.

Example:
  lstm-dssm-serve --models=MODELS --port=8500
"""

import signal
import sys
import threading

from absl import flags

from keras_lstm_dssm.export.prediction_service import PredictionServer
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
    "max_message_mb", 64, "Largest request and reply, in MiB.", 1, 2047,
    flag_values=FLAGS,
)  # fmt: skip


def main(_: list[str]) -> None:
    """Serves until a signal comes."""
    ended = threading.Event()
    before = {
        number: signal.signal(number, lambda *_: ended.set())
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        with PredictionServer(
            _MODELS.value,
            port=_PORT.value,
            host=_HOST.value,
            versions=_VERSIONS.value,
            max_message_mb=_MAX_MESSAGE_MB.value,
        ) as server:
            for name in server.models.names():
                for version in server.models.versions(name):
                    print(f"{name} version {version}")
            # Whoever waits for this line reads it through a pipe.
            print(f"serving on {_HOST.value}:{server.port}", flush=True)
            ended.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


run = program(main, FLAGS, __doc__, required=["models"])

if __name__ == "__main__":
    sys.exit(run())
