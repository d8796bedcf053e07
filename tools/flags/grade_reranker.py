"""Rerank judged documents by gradient-boosted trees on word overlap.

The trees are a reference for two-tower models: unlike these, they get query
and title together, and are trained on the grades themselves. Prints the
measures of the judged documents, in percent.

Example:
    python -m lstm_dssm_programs grade_reranker --data=FOLDER
"""

from keras_lstm_dssm.command_line import CommandLine, definers, new_flags

FLAGS = new_flags()
define = definers(FLAGS)
define.string("data", None, "`api`, or a folder in BEIR's format.")
define.string("split", "dev", "Split whose queries are ranked.")
define.integer("seed", 0, "Seed of the trees.")

COMMAND_LINE = CommandLine(__doc__, FLAGS, required=["data"])
