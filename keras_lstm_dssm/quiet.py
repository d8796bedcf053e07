"""TensorFlow imported without its chatter about itself."""

import os
import sys
import tempfile

_CHATTER = ("I0000 ", "WARNING: All log messages before absl::Initialize")


def import_tensorflow() -> None:
    """Imports TensorFlow, and drops the information it prints meanwhile.

    Its C++ code writes half a dozen lines to standard error before its own
    log level counts; the one line that a program says of wrong input would
    be lost among them. Other lines are passed on. TF_CPP_MIN_LOG_LEVEL=0
    shows everything.
    """
    # Its "errors" are notes on the machine (no GPU, no AVX-512); what goes
    # wrong is raised in Python.
    level = os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if "tensorflow" in sys.modules or level == "0":
        return
    try:
        stderr = os.dup(2)
    except OSError:  # a process without standard error
        return
    with tempfile.TemporaryFile() as caught:
        os.dup2(caught.fileno(), 2)
        try:
            import tensorflow  # noqa: F401
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
            caught.seek(0)
            for line in caught.read().decode(errors="replace").splitlines():
                if not line.startswith(_CHATTER):
                    print(line, file=sys.stderr)
