"""Computes a sentence encoder's vectors, from which towers learn.

This is the work of the program lstm-dssm-teach. Its help and its flags are in
`tools/flags/teach.py`, which is imported first and without TensorFlow.
"""

import sys
import time
from typing import Any

from keras_lstm_dssm.data.sources import absolute_spec
from keras_lstm_dssm.distillation.teacher_vectors import TeacherFolder, teach
from keras_lstm_dssm.tools.flags.teach import COMMAND_LINE, FLAGS
from keras_lstm_dssm.tools.train_flags import allowed_bad_lines


def main(_: list[str]) -> dict[str, Any]:
    """Computes the vectors; returns their number and the time."""
    start = time.perf_counter()
    teacher = teach(
        FLAGS.data,
        FLAGS.encoder,
        FLAGS.output,
        min_relevant=FLAGS.min_relevant,
        max_bad_lines=allowed_bad_lines(FLAGS),
        progress=sys.stderr.isatty(),
    )
    seconds = time.perf_counter() - start
    settings = TeacherFolder(FLAGS.output).read_settings()
    queries, titles = settings["queries"], settings["titles"]
    print(
        f"wrote {FLAGS.output}: {queries:,} queries, {titles:,} titles,"
        f" vectors {teacher.vectors.shape}"
    )
    return {
        "data": absolute_spec(FLAGS.data),
        "encoder": settings["encoder"],
        "queries": queries,
        "titles": titles,
        "shape": teacher.vectors.shape,
        "seconds": seconds,
    }


run = COMMAND_LINE.program(main)

if __name__ == "__main__":
    sys.exit(run())
