"""Splits clicks by query into training, dev and test.

The folder it writes serves `lstm-dssm-train` and `lstm-dssm-evaluate`: the
clicks of the training queries, every title, and the dev and test queries
with the number of clicks on each title as its grade. No query of dev or test
occurs in training, and a query's split never changes when the log grows.

Example:
  lstm-dssm-split --data=clicks.tsv.gz --output=FOLDER
  lstm-dssm-train --data=FOLDER --output=RUN
  lstm-dssm-evaluate --run=RUN --data=FOLDER --split=dev --mode=retrieve
"""

import sys
from pathlib import Path
from typing import Any

from absl import flags

from keras_lstm_dssm.data import (
    describe,
    describe_bad,
    open_files,
    split_log,
)
from keras_lstm_dssm.files import check_folder
from keras_lstm_dssm.tools.program import new_flags, program
from keras_lstm_dssm.tools.train_flags import (
    allowed_bad_lines,
    define_bad_line_flags,
)

FLAGS = new_flags()
_DATA = flags.DEFINE_string(
    "data", None, "Click files (.tsv, .tsv.gz, globs).", flag_values=FLAGS
)
_OUTPUT = flags.DEFINE_string(
    "output", None, "New folder, in BEIR's form.", flag_values=FLAGS
)
_DEV = flags.DEFINE_integer(
    "dev_percent", 5, "Of the queries, to tune on.", 0, 99, flag_values=FLAGS
)
_TEST = flags.DEFINE_integer(
    "test_percent", 10, "Of the queries, to measure on at the end.", 0, 99,
    flag_values=FLAGS,
)  # fmt: skip
define_bad_line_flags(FLAGS)


def main(_: list[str]) -> dict[str, Any]:
    """Splits; prints and returns what each part holds."""
    check_folder(Path(_OUTPUT.value).parent)
    log = open_files(_DATA.value, allowed_bad_lines(FLAGS.flag_values_dict()))
    collection = split_log(log, _OUTPUT.value, _DEV.value, _TEST.value)
    print(describe(collection))
    if bad := log.bad_lines():
        print(f"--data: left out bad lines: {describe_bad(bad)}")
    assert collection.clicks is not None  # it was just written
    return {
        "titles": len(collection.documents),
        "bad_lines": bad,
        "train_clicks": collection.clicks.count(),
        **{f"{s}_queries": len(collection.qrels(s)) for s in collection.splits},
    }


run = program(main, FLAGS, __doc__, required=["data", "output"])

if __name__ == "__main__":
    sys.exit(run())
