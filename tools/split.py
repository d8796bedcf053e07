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

from keras_lstm_dssm.command_line import Program
from keras_lstm_dssm.files import check_folder
from keras_lstm_dssm.tools.settings_flags import (
    allowed_bad_lines,
    define_bad_line_flags,
)

program = Program(__doc__, required=["data", "output"])
FLAGS = program.flags
program.string("data", None, "Click files (.tsv, .tsv.gz, globs).")
program.string("output", None, "Folder to write, in BEIR's format.")
program.integer(
    "dev_percent", 5, "Percentage of queries for model selection (dev).", 0, 99
)
program.integer(
    "test_percent", 10, "Percentage of queries for final evaluation (test).",
    0, 99,
)  # fmt: skip
define_bad_line_flags(FLAGS)


def main(_: list[str]) -> dict[str, Any]:
    """Splits; prints and returns the size of each part."""
    from keras_lstm_dssm.data.click_log import describe_bad
    from keras_lstm_dssm.data.sources import open_files
    from keras_lstm_dssm.data.split import split_log

    check_folder(Path(FLAGS.output).parent)
    log = open_files(FLAGS.data, allowed_bad_lines(FLAGS))
    collection = split_log(
        log, FLAGS.output, FLAGS.dev_percent, FLAGS.test_percent
    )
    print(collection.describe())
    if bad := log.bad_lines():
        print(f"--data: left out bad lines: {describe_bad(bad)}")
    assert collection.clicks is not None  # it was just written
    return {
        "titles": len(collection.documents),
        "bad_lines": bad,
        "train_clicks": collection.clicks.count(),
        **{f"{s}_queries": len(collection.qrels(s)) for s in collection.splits},
    }


run = program.main(main)

if __name__ == "__main__":
    sys.exit(run())
