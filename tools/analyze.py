r"""Show what a trained model represents of a text, on one HTML page.

Example:
  lstm-dssm-analyze --run=RUN --query="hotels in shanghai" \
      --document="shanghai hotels accommodation" --output=report.html
  lstm-dssm-analyze --run=RUN --data=api --claims --output=report.html

The page has the paper's Figs. 4 to 7 and Tables I to III for a query and a
title, the attenuation of each word, the nearest titles and a map of titles.
With --claims it also measures, on the queries and titles of the data, whether
the words that the model attenuates are stop words, how much of the cosine
remains with the keywords alone, and whether the words of a cell are similar.
With --projector, titles and vectors are written into RUN/logs for TensorBoard.

For the run of an MV-LSTM, the page has the interaction matrices of some test
queries with a right and a wrong answer, and the words that match best. For that
of a KeyVec it has some test documents with their key sentences and key words,
and a map of documents.
"""

import sys
from pathlib import Path
from typing import Any

from keras_lstm_dssm.command_line import Program
from keras_lstm_dssm.settings.choices import MAP_METHODS
from keras_lstm_dssm.settings.reports import (
    PAPER_DOCUMENT,
    PAPER_QUERY,
    ReportSettings,
)
from keras_lstm_dssm.text_files import text_lines
from keras_lstm_dssm.tools.train_flags import (
    allowed_bad_lines,
    define_bad_line_flags,
)

program = Program(__doc__, required=["run", "output"])
FLAGS = program.flags
_DEFAULTS = ReportSettings()

program.string("run", None, "The folder that lstm-dssm-train wrote.")
program.string("output", None, "The HTML file to write.")
program.string("query", PAPER_QUERY, "A query, by default the paper's.")
program.string(
    "document", PAPER_DOCUMENT,
    "The title of a document to compare with the query, by default the "
    "paper's.",
)  # fmt: skip
program.string(
    "data", None,
    "Data with titles and queries: `api`, a BEIR folder or click files; for a "
    "KeyVec `api_documents` or a folder of documents. By default the data that "
    "the run was trained on.",
)  # fmt: skip
define_bad_line_flags(FLAGS)
program.string(
    "queries", None,
    "A file with queries for the topics of the cells, one a line; by default "
    "the queries of the data.",
)  # fmt: skip
program.integer(
    "cells", _DEFAULTS.cells,
    "Number of most active cells of a text, for its keywords.", 1,
)  # fmt: skip
program.integer(
    "topic_cells", _DEFAULTS.topic_cells,
    "Number of most active cells of a query, for the topics.", 1,
)  # fmt: skip
program.float(
    "change", _DEFAULTS.change,
    "A word is assigned to a cell whose output changes at the word by this "
    "share of its final output, or more.", 0,
)  # fmt: skip
program.float(
    "share", _DEFAULTS.share,
    "A keyword is assigned to more than this share of the active cells.", 0, 1,
)  # fmt: skip
program.enum(
    "map", _DEFAULTS.map, MAP_METHODS,
    "Method that lays out the map of titles or documents.",
)  # fmt: skip
program.integer(
    "map_titles", _DEFAULTS.map_titles,
    "Number of titles or documents on the map.", 3,
)  # fmt: skip
program.integer(
    "examples", _DEFAULTS.examples,
    "Pair scorers: number of queries, each with two answers. KeyVec: number of "
    "documents.", 1,
)  # fmt: skip
program.string(
    "salience", None,
    "KeyVec: what chooses the key sentences to compare with, `bm25`, "
    "`trigrams`, `lead` or a run folder; by default as in training.",
)  # fmt: skip
program.string(
    "csv", None, "KeyVec: a folder to write the figures to, as CSV files."
)
program.string(
    "pictures", None, "A folder to keep the pictures in, as PNG files."
)
program.bool("claims", False, "Also measure the paper's claims on the data.")
program.bool(
    "projector", False, "Also write RUN/logs for TensorBoard's projector."
)


def main(_: list[str]) -> dict[str, Any]:
    """Writes the page; returns the results that it shows."""
    from keras_lstm_dssm.analysis import analyze_run
    from keras_lstm_dssm.analysis.claims import CLAIM_LABELS
    from keras_lstm_dssm.data.click_log import describe_bad

    report = analyze_run(FLAGS.run, FLAGS.output, _settings())
    if report.bad_lines:
        print(f"skipped bad lines: {describe_bad(report.bad_lines)}")
    print(f"wrote {FLAGS.output}")
    if FLAGS.projector and report.projected:
        texts, logs = report.projected[0], Path(FLAGS.run, "logs")
        print(f"{texts} for the projector: tensorboard --logdir={logs}")
    claims = report.values.get("claims", [])
    for name, label in CLAIM_LABELS.items():
        results = [result for result in claims if result["claim"] == name]
        if results:
            print(label)
        for result in results:
            print(
                "  {side:8} {model:10}".format(**result),
                "value {value:6.3f}  chance {chance:6.3f}  p {p:.4f}  "
                "of {number:,}".format(**result["comparison"]),
            )
    return report.values


def _settings() -> ReportSettings:
    """Returns the settings of the flags that are given."""
    given = {
        name: FLAGS[name].value
        for name in ReportSettings._fields
        if FLAGS[name].present
    }
    if FLAGS.queries:
        lines = text_lines(FLAGS.queries)
        given["queries"] = [line for line in lines if line.strip()]
    given["max_bad_lines"] = None
    if FLAGS["on_bad_line"].present:
        given["max_bad_lines"] = allowed_bad_lines(FLAGS)
    return ReportSettings(**given)


run = program.main(main)

if __name__ == "__main__":
    sys.exit(run())
