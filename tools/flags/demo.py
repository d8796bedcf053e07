"""Demonstrate the whole pipeline on text that every machine has.

Builds the API-search corpus, trains `best`, evaluates it with BM25 and random
order for comparison, exports it, serves it on a free port, searches for four
questions over gRPC and writes a report on a query and a title (report.html).
Each step is one of the programs, whose command line is printed. `make demo`
runs this program. It ends with what was trained, how good it is, where the
files are, and what to do next; nothing is left running.

Example:
  python -m lstm_dssm_programs demo --output=build/demo
"""

from keras_lstm_dssm.command_line import CommandLine, definers, new_flags
from keras_lstm_dssm.settings.presets import TOWER_PRESETS

FLAGS = new_flags()
define = definers(FLAGS)
define.string(
    "output", "build/demo",
    "Folder to write; the files of an earlier demo are removed.",
)  # fmt: skip
define.string("data", "api", "`api` or a BEIR folder.")
define.enum("preset", "best", list(TOWER_PRESETS), "Recipe to train.")
define.integer(
    "epochs", None, "Passes over the pairs; by default the preset's.", 1
)

COMMAND_LINE = CommandLine(__doc__, FLAGS, required=["output", "data"])
