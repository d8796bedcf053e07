r"""Make a data folder from a catalogue and a log, to train and evaluate on.

Example:
  lstm-dssm-prepare --catalogue=catalogue.csv --title=title \
      --text=brand,category --tags=category,in_stock \
      --clicks="log-*.csv.gz" --query=query --clicked=product_id --output=SHOP
  lstm-dssm-prepare --clicks=clicks.tsv --output=SHOP
  lstm-dssm-prepare --catalogue=catalogue.csv --output=SHOP
  lstm-dssm-train --data=SHOP --dev=SHOP --preset=best --output=RUN

Files are parquet, CSV or TSV in any dialect, JSON lines or JSON arrays. All but
parquet may be compressed (.gz). Columns with usual names are recognised; flags
name other columns. In a file without a header, flags give the numbers of the
columns. Without a catalogue, the log must have the titles of the clicked
products. Without a log, the folder can be exported (lstm-dssm-export --hybrid),
and --append can add a log later. Ids are text: 007 and 7 are different ids.

The program prints the columns, five clicks with their products, and the numbers
of rows that are left out, with examples; --dry_run writes nothing. If the
percentage of bad rows is above --max_bad_percent, or fewer than half of the
clicks are on products of the catalogue, nothing is written.

No query of dev or test occurs in training, not even with other letter case,
spaces or punctuation. A query keeps its split when the log grows. However, with
--test_after=TIME the split test has all clicks from TIME on, and queries of
test may occur in training. docs/data.md describes the folder.
"""

from pathlib import Path
from typing import Any

from absl import app

from lstm_dssm_programs import load_package
from keras_lstm_dssm.command_line import Program, printable
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import check_folder
from keras_lstm_dssm.settings.prepare import PrepareSettings
from keras_lstm_dssm.tools.settings_flags import define_settings, flag_names

program = Program(__doc__)
FLAGS = program.flags
program.string("output", None, "Folder to write, in BEIR's format.")
program.bool("dry_run", False, "Report what is found, and write nothing.")
define_settings(program, {"": PrepareSettings}, defaults=True)


@program.main
def main(_: list[str]) -> dict[str, Any]:
    """Reads and reports the sources, and writes the folder; returns counts."""
    if FLAGS.dry_run:
        program.check_unused(["append"], "is not used with --dry_run")
    elif not FLAGS.output:
        raise InputError(
            "--output is missing: expected a folder to write, or --dry_run"
        )
    settings = PrepareSettings(
        **{name: FLAGS[name].value for name in flag_names([PrepareSettings])}
    )
    if FLAGS.output:
        check_folder(Path(FLAGS.output).parent)
    load_package()
    from keras_lstm_dssm.data.prepare import prepare

    output = None if FLAGS.dry_run else FLAGS.output
    return prepare(output, settings, lambda line: print(printable(line))).counts


if __name__ == "__main__":
    app.run(main, flags_parser=program.parse)
