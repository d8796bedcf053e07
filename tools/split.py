"""Split clicks by query into training, dev and test.

The output folder is an input of `lstm-dssm-train` and `lstm-dssm-evaluate`. It
holds the clicks of the training queries, every title, and the dev and test
queries with a grade for each clicked title. The grade is
round(log2(1 + 15 * clicks / most)), where most is the number of clicks of the
query's most clicked title, and at least 1: it is 4 from 69 % of most, 3 from
31 %, 2 from 12 %, and otherwise 1. No query of dev or test occurs in training,
not even with other letter case, spaces or punctuation. A query keeps its split
when the log grows.

Pages of results (`ubi:FOLDER`, a log of User Behavior Insights, or .parquet)
are graded by round(2 * clicks / expected clicks), at most 4, where each
position has its share of the clicks: 2 is a title that is clicked as often as
others at its positions. `--test_after=2026-11-01` tests on the pages from that
day on.

Example:
  lstm-dssm-split --data=clicks.tsv.gz --output=FOLDER
  lstm-dssm-split --data=ubi:LOGS --documents=titles.txt --output=FOLDER
  lstm-dssm-train --data=FOLDER --output=RUN
  lstm-dssm-evaluate --run=RUN --data=FOLDER --split=dev --mode=retrieve
"""

from pathlib import Path
from typing import Any

from absl import app

from lstm_dssm_programs import load_package
from keras_lstm_dssm.command_line import Program
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import check_folder
from keras_lstm_dssm.settings.training import TrainingConfig
from keras_lstm_dssm.tools.settings_flags import define_options

program = Program(__doc__, required=["data", "output"])
FLAGS = program.flags
program.string(
    "data", None,
    "Click files (.tsv, .tsv.gz, globs); or pages: ubi:FOLDER, or .parquet.",
)  # fmt: skip
program.string("output", None, "Folder to write, in BEIR's format.")
program.integer(
    "dev_percent", 5, "Percentage of queries for model selection (dev).", 0, 99
)
program.integer(
    "test_percent", 10, "Percentage of queries for final evaluation (test).",
    0, 99,
)  # fmt: skip
program.string(
    "test_after", None,
    "With pages: a date, YYYY-MM-DD, or a time of ISO 8601; the pages from "
    "then on are test, and those before dev and training.",
)  # fmt: skip
define_options(program, TrainingConfig, "documents", "actions", "max_bad_lines")


@program.main
def main(_: list[str]) -> dict[str, Any]:
    """Splits; prints and returns the size of each part."""
    load_package()
    from keras_lstm_dssm.data.click_log import describe_bad
    from keras_lstm_dssm.data.click_pages import (
        ClickPages,
        is_pages,
        read_titles,
    )
    from keras_lstm_dssm.data.sources import open_files
    from keras_lstm_dssm.data.split import split_log, split_pages
    from keras_lstm_dssm.settings.data import parts_of

    check_folder(Path(FLAGS.output).parent)
    percents = FLAGS.dev_percent, FLAGS.test_percent
    parts = parts_of(FLAGS.data)
    if len(parts) > 1 and any(map(is_pages, parts)):
        raise InputError(
            f"--data={FLAGS.data}: found several parts, of which one is pages,"
            " expected one log of pages, or click files: split each by itself"
        )
    if is_pages(FLAGS.data):
        documents = read_titles(FLAGS.documents) if FLAGS.documents else None
        pages = ClickPages(
            FLAGS.data, documents, FLAGS.actions, FLAGS.max_bad_lines
        )
        collection = split_pages(pages, FLAGS.output, *percents, _test_after())
        bad = pages.bad_lines
    else:
        program.check_unused(
            ("documents", "actions", "test_after"),
            "is for pages of results: leave it out",
        )
        log = open_files(FLAGS.data, FLAGS.max_bad_lines)
        collection = split_log(log, FLAGS.output, *percents)
        bad = log.bad_lines()
    print(collection.describe())
    if bad:
        print(f"--data: left out bad lines: {describe_bad(bad)}")
    assert collection.clicks is not None  # it was just written
    return {
        "titles": len(collection.documents),
        "bad_lines": bad,
        "train_clicks": collection.clicks.count(),
        **{f"{s}_queries": len(collection.qrels(s)) for s in collection.splits},
    }


def _test_after() -> float | None:
    """Reads --test_after as seconds since 1970, of UTC without a zone."""
    from keras_lstm_dssm.data.click_pages import seconds_of

    seconds = seconds_of(FLAGS.test_after)
    if FLAGS.test_after and seconds is None:
        raise InputError(
            f"--test_after={FLAGS.test_after}: expected a date or a time of"
            " ISO 8601, such as 2026-11-01"
        )
    return seconds


if __name__ == "__main__":
    app.run(main, flags_parser=program.parse)
