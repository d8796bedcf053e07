r"""Build a faiss index over exported vectors and measure its recall.

With tens of millions of documents, an index is faster than an exported
retriever, but misses some of the nearest documents. Needs
pip install "keras-lstm-dssm[faiss]".

Example:
  lstm-dssm-encode --saved_model=MODELS/document_encoder \
      --input=titles.txt --output=titles.npy --ids=titles.ids
  lstm-dssm-encode --saved_model=MODELS/query_encoder \
      --input=queries.txt --output=queries.npy
  lstm-dssm-index --vectors=titles.npy --queries=queries.npy \
      --factory=HNSW32 --search=efSearch=128 --output=titles.faiss

--vectors can also be a folder of parts that lstm-dssm-encode --shard has
written: they are read one at a time, and their ids are written to OUTPUT.ids;
their tags, if they have any, to OUTPUT.tags.

Prints the index's size and the time to build it and, with --queries, its
recall compared with exact search and the milliseconds for a query. Row i of
the vectors is document i of the index.
"""

from keras_lstm_dssm.command_line import CommandLine, definers, new_flags

FLAGS = new_flags()
define = definers(FLAGS)
define.string(
    "vectors", None, "The documents' vectors, .npy, or a folder of parts."
)
define.string(
    "queries", None, "Vectors of queries to measure the recall with, .npy."
)
define.string(
    "factory", "HNSW32",
    "Kind of index, as faiss.index_factory takes it: HNSW32, IVF1024,Flat.",
)  # fmt: skip
define.string(
    "search", "",
    "Search parameters of the index: efSearch=128 (HNSW), nprobe=16 (IVF). "
    "Larger values raise the recall and the time for a query.",
)  # fmt: skip
define.string("output", None, "File of the index to write.")

COMMAND_LINE = CommandLine(__doc__, FLAGS, required=["vectors", "output"])
