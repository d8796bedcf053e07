"""Measure the speed of training, encoding and serving, and how it scales.

Example:
  lstm-dssm-benchmark --suite=train,encode --data=clicks.tsv.gz --json=out.json

Suites, several separated by commas, or `all`:
  train   pairs/s, from strings to updated weights
  encode  titles/s, from strings to vectors
  serve   milliseconds for one query, in process and over gRPC
  load    many clients of lstm-dssm-serve, over gRPC and HTTP, while versions
          are swapped, and one client of each kind beside servers that always
          send the same reply
  batch   milliseconds for a request of 1 to 512 queries
  retriever  latency, memory and recall of a retriever of many titles
  profile milliseconds of each kind of operation in a training step, and of
          the step by number of cells, words and pairs in a batch
  scale   cost of a pair, memory, and time to the first training step, on
          synthetic logs
  cores   milliseconds of a training step and of encoding with 1, 2, 4 and more
          cores, and the speed with 8 and 16 as Amdahl's law predicts it
  matching  triples/s of pair scorers, from strings to updated weights, and
          milliseconds to score 1,000 candidates of one query
  documents  documents/s and sentences/s of KeyVec, from strings to updated
          weights and from strings to vectors, and the cost of a sentence in
          documents of 8 to 1,000 sentences
In `train` and `encode`, the same towers in stock Keras and, where they are
installed, in PyTorch and JAX are measured in turn with those of this package;
so are the pair scorers of `matching` and the KeyVec of `documents` in PyTorch.
`matching` reads the judged lists of --data, or if they have none, mines
negatives for its clicks. Results are medians. Run it on an idle machine; its
load is printed first.
"""

from keras_lstm_dssm.command_line import CommandLine, definers, new_flags
from keras_lstm_dssm.settings.presets import TOWER_PRESETS

FLAGS = new_flags()
define = definers(FLAGS)
define.list("suite", ["train"], "Suites to run, or `all`.")
define.string(
    "data",
    None,
    "`api` (the default), `api_sentences`, a folder in BEIR's format, or click "
    "files. If `documents` is the only suite: `api_documents` (the default) or "
    "a folder of documents; beside other suites it reads `api_documents`.",
)
define.integer(
    "batch_size", 1024, "Pairs in a training step; texts encoded at once.", 2
)
define.integer("triples", 128, "Triples in a training step of `matching`.", 1)
define.integer(
    "documents", 32, "Documents in a training step of `documents`.", 1
)
define.integer("steps", 30, "Training steps in one measurement.", 1)
define.integer("rounds", 5, "Measurements, whose median is printed.", 1)
define.integer("titles", 20_480, "Largest number of titles to encode.", 1)
define.integer("queries", 500, "Single queries in one measurement.", 1)
define.list("clients", ["8", "64"], "Numbers of concurrent clients in `load`.")
define.float(
    "seconds", 60.0, "Seconds of requests for each number of clients.", 0.1
)
define.float(
    "swap_seconds", 5.0,
    "Seconds between the new versions published in `load`.", 0.1,
)  # fmt: skip
define.integer(
    "hostile", 0,
    "Number of clients that send half of a request or read no reply; beside "
    "them `load` is measured a second time.", 0,
)  # fmt: skip
define.integer(
    "titles_in_index", 1_000_000, "Number of titles in `retriever`.", 1
)
define.list(
    "pairs", ["10000", "100000", "1000000", "10000000"],
    "Sizes of the logs in `scale`; ten million pairs take 0.8 GB on disk.",
)  # fmt: skip

define.enum(
    "preset", "lstm_96", list(TOWER_PRESETS),
    "Towers of `scale`; of others than `lstm_96` the whole recipe is measured, "
    "with its synthetic pairs, mining and batch size.",
)  # fmt: skip

define.integer(
    "mine_clusters", 0,
    "As for lstm-dssm-train, in the recipe that `scale` measures.", 0,
)  # fmt: skip

COMMAND_LINE = CommandLine(__doc__, FLAGS)
