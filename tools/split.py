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

import sys
from pathlib import Path
from typing import Any

from keras_lstm_dssm.data import describe, describe_bad, open_files, split_log
from keras_lstm_dssm.files import check_folder
from keras_lstm_dssm.tools.program import definers, new_flags, program
from keras_lstm_dssm.tools.train_flags import (
    allowed_bad_lines,
    define_bad_line_flags,
)

FLAGS = new_flags()
define = definers(FLAGS)
_DATA = define.string("data", None, "Click files (.tsv, .tsv.gz, globs).")
_OUTPUT = define.string("output", None, "Folder to write, in BEIR's format.")
_DEV = define.integer(
    "dev_percent", 5, "Percentage of queries for model selection (dev).", 0, 99
)
_TEST = define.integer(
    "test_percent", 10, "Percentage of queries for final evaluation (test).",
    0, 99,
)  # fmt: skip
define_bad_line_flags(FLAGS)


def main(_: list[str]) -> dict[str, Any]:
    """Splits; prints and returns the size of each part."""
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
