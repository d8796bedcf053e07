r"""Show how a trained model represents texts, on one HTML page.

Example:
  lstm-dssm-analyze --run=RUN --query="hotels in shanghai" \
      --document="shanghai hotels accommodation" --output=report.html
  lstm-dssm-analyze --run=RUN --data=api --claims --output=report.html

For two towers, the page has Figs. 4 to 7 and Tables I to III of Palangi et al.
2016 for a query and a title, the attenuation of each word, the nearest titles
and a map of titles. With --claims the page also has measurements on the data:
whether attenuated words are stop words, how much of the cosine remains if texts
have only their keywords, and whether the words that activate the same cell of
an encoder are similar. With --projector, titles and vectors are also written
for TensorBoard.

For an MV-LSTM, the page has interaction matrices of test queries with a right
and a wrong answer, and the words that match best. For a KeyVec, the page has
test documents with their key sentences and key words, and a map of documents.
"""

from pathlib import Path
from typing import Any

from absl import app

from lstm_dssm_programs import load_package
from keras_lstm_dssm.command_line import Program
from keras_lstm_dssm.errors import check_installed
from keras_lstm_dssm.plain_files import text_lines
from keras_lstm_dssm.settings.programs import ReportSettings
from keras_lstm_dssm.tools.settings_flags import define_settings, flag_names

program = Program(__doc__, required=["run", "output"])
FLAGS = program.flags
program.string("run", None, "The folder that lstm-dssm-train wrote.")
program.string("output", None, "The HTML file to write.")
program.string(
    "queries", None,
    "File of queries for Table III, one query a line; by default queries of "
    "the data.",
)  # fmt: skip
program.define_set("A threshold, a size or a folder of the report")
define_settings(
    program,
    {"": ReportSettings},
    named=(
        "query", "document", "data", "max_bad_lines", "salience", "against",
        "claims", "projector",
    ),
    defaults=True,
)  # fmt: skip


@program.main
def main(_: list[str]) -> dict[str, Any]:
    """Writes the page; returns the results on the page."""
    check_installed("matplotlib", "analysis")  # before the run is read
    load_package()
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
    values = {
        name: program.flag(name).value
        for name in flag_names([ReportSettings])
        if program.flag(name).present
    }
    if FLAGS.queries:
        lines = text_lines(FLAGS.queries)
        values["queries"] = [line for line in lines if line.strip()]
    return ReportSettings(**values)


if __name__ == "__main__":
    app.run(main, flags_parser=program.parse)
