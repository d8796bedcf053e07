r"""Train and measure the systems of the paper's Table IV on one data set.

Example:
  lstm-dssm-table_iv --data=FOLDER --systems=all --seeds=3 --epochs=30 \
      --output=OUT
  lstm-dssm-table_iv --data=api --systems=random,bm25,dssm,lstm_96 \
      --seeds=1 --epochs=1 --output=OUT

The same as `lstm-dssm-table --paper=table_iv`. `--data` is `api`, or a BEIR
folder with the splits dev and test, or several separated by commas. The
hyperparameters (learning rate and gamma; k1, b and words of BM25; ...) are
chosen on dev by the same small search for all systems of a kind. OUT holds
table.md, table.json, table.html, chart.png, dev.png and .csv, figure_7.png and
.csv; with --misspelled robustness.md, .json and .png; with --pairs curve.csv
and curve.MODE.png; and systems/NAME/seed_S/ with the measures and the TREC
runs. Finished systems are not run again, so that a table can be interrupted,
and more systems or seeds can be named later. The exit code is 1 if a system
failed; the table then holds the others.
"""

import sys
from typing import Any

from keras_lstm_dssm.tools.table import make_tables, table_program

program = table_program(__doc__, ["table_iv"])
FLAGS = program.flags


def main(_: list[str]) -> dict[str, Any]:
    """Makes Table IV."""
    return make_tables(FLAGS, "table_iv")


run = program.main(main)

if __name__ == "__main__":
    sys.exit(run())
