"""Divides a click log by query into training, dev and test.

This is the work of the program lstm-dssm-split. Its help and its flags are in
`tools/flags/split.py`, which is imported first and without TensorFlow.
"""

import sys
from pathlib import Path
from typing import Any

from keras_lstm_dssm.data import split_log
from keras_lstm_dssm.data.click_log import describe_bad
from keras_lstm_dssm.data.sources import open_files
from keras_lstm_dssm.files import check_folder
from keras_lstm_dssm.tools.flags.split import COMMAND_LINE, FLAGS
from keras_lstm_dssm.tools.train_flags import allowed_bad_lines


def main(_: list[str]) -> dict[str, Any]:
    """Splits; prints and returns the size of each part."""
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


run = COMMAND_LINE.program(main)

if __name__ == "__main__":
    sys.exit(run())
