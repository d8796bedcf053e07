"""Evaluate a pre-trained sentence-transformers model on the same files.

Such a general model is the alternative for users without clicks. Prints NDCG,
MRR, recall and other measures in percent, and the texts encoded a second.

Example:
    pip install "keras-lstm-dssm[teacher]"
    python -m lstm_dssm_programs sentence_model --data=FOLDER \
        --model=sentence-transformers/all-MiniLM-L6-v2 --mode=retrieve
"""

from keras_lstm_dssm.command_line import CommandLine, definers, new_flags
from keras_lstm_dssm.settings.choices import MODES

FLAGS = new_flags()
define = definers(FLAGS)
define.string(
    "model", "sentence-transformers/all-MiniLM-L6-v2",
    "Name on the Hugging Face hub, or folder of the model; or another encoder "
    "that lstm-dssm-teach takes.",
)  # fmt: skip
define.string("data", None, "`api`, or a folder in BEIR's format.")
define.string("split", "test", "Split whose queries are ranked.")
define.list("mode", list(MODES), "Rankings to measure: rerank, retrieve.")
define.integer(
    "min_relevant", 1, "Lowest grade that counts as relevant.", lower_bound=1
)

COMMAND_LINE = CommandLine(__doc__, FLAGS, required=["data"])
