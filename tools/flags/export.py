"""Export a trained model for TF Serving.

Example:
  lstm-dssm-export --run=build/run --documents=titles.txt --output=MODELS

Writes query_encoder/ and document_encoder/, or keyvec/ of the run of a KeyVec,
and, with --documents, retriever/; of the run of a pair scorer, scorer/; of
that of a ranker, ranker/ and, with --documents, two_stage/. MODELS
may have models of another run: they do not change. The exported ones get a new
version of the same number. A running server of MODELS changes to the new
versions of all models when they are complete. titles.txt has one title a line,
or an id, a tab and a title; --documents can also be a folder of documents, or
a file of JSON lines (docs/documents.md). docs/serving.md describes the files
and how much accuracy --vectors=int8 costs.

--documents can also be a folder of parts that lstm-dssm-encode has written with
the document_encoder of the same run. With --update=MODELS/retriever --add=FILE
--delete=IDS, and no --run, only titles that have changed are encoded, and a
whole new version is published (docs/scaling.md).

With --mix=RUN2 --mix_weights=0.6,0.4 the encoders of several runs become one:
the cosine of their vectors, and the score of the retriever, is the weighted
sum of the runs' cosines. docs/rerank.md says how to choose the weights.
"""

from keras_lstm_dssm.command_line import CommandLine, definers, new_flags
from keras_lstm_dssm.settings.choices import MAX_K, VECTORS
from keras_lstm_dssm.tools.mixture_flags import define_mixture_flags

FLAGS = new_flags()
define = definers(FLAGS)
define.string("run", None, "Folder of a run that lstm-dssm-train wrote.")
define.string("output", None, "Folder of the models, created if missing.")
define.string(
    "documents", None,
    "The documents of the retriever, or of the two stages of a ranker: a "
    "file of titles, .txt or .gz, a folder "
    "of documents or a file .jsonl; not for pair scorers. Without it no "
    "retriever is exported.",
)  # fmt: skip
define.enum(
    "vectors", "float32", list(VECTORS),
    "How the retriever stores the documents' vectors: with 4 bytes a number, "
    "or rounded to 1 byte.",
)  # fmt: skip
define.integer(
    "max_k", MAX_K,
    "Largest number of results for a query. A request for more gets this "
    "many, so that no request can exhaust the server's memory.",
    1, 2**31 - 1,
)  # fmt: skip
define.string(
    "update", None,
    "Folder of a retriever, such as MODELS/retriever, to publish anew after "
    "some of its titles have changed; without --run.",
)  # fmt: skip
define.string(
    "add", None,
    "With --update: titles to add, as for --documents; one whose id exists "
    "replaces the old title.",
)  # fmt: skip
define.string(
    "delete", None, "With --update: file of ids to remove, one a line."
)
define_mixture_flags(
    define,
    "folders of other runs of two towers",
    ", such as lstm-dssm-evaluate has chosen on dev",
)

COMMAND_LINE = CommandLine(__doc__, FLAGS)
