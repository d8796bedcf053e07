"""Split clicks by query into training, dev and test.

The output folder is an input of `lstm-dssm-train` and `lstm-dssm-evaluate`. It
holds the clicks of the training queries, every title, and the dev and test
queries with a grade for each clicked title. The grade is
round(log2(1 + 15 * clicks / most)), where most is the number of clicks of the
query's most clicked title, and at least 1: it is 4 from 69 % of most, 3 from
31 %, 2 from 12 %, and otherwise 1. No query of dev or test occurs in training,
not even with other letter case, spaces or punctuation. A query keeps its split
when the log grows.

Example:
  lstm-dssm-split --data=clicks.tsv.gz --output=FOLDER
  lstm-dssm-train --data=FOLDER --output=RUN
  lstm-dssm-evaluate --run=RUN --data=FOLDER --split=dev --mode=retrieve
"""

from keras_lstm_dssm.command_line import CommandLine, definers, new_flags
from keras_lstm_dssm.tools.settings_flags import define_bad_line_flags

FLAGS = new_flags()
define = definers(FLAGS)
define.string("data", None, "Click files (.tsv, .tsv.gz, globs).")
define.string("output", None, "Folder to write, in BEIR's format.")
define.integer(
    "dev_percent", 5, "Percentage of queries for model selection (dev).", 0, 99
)
define.integer(
    "test_percent", 10, "Percentage of queries for final evaluation (test).",
    0, 99,
)  # fmt: skip
define_bad_line_flags(FLAGS)

COMMAND_LINE = CommandLine(__doc__, FLAGS, required=["data", "output"])
