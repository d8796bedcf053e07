"""Send queries to a server over gRPC: TF Serving or lstm-dssm-serve.

Prints the ids of the best documents for each query with their scores. Where
the documents were exported without ids, their ids are their titles. With
`--vectors` it prints the queries' vectors instead, with `--status` the states
of the model's versions.

With the model of a pair scorer the first argument is the query, and the others
are the documents to score: it prints score, tab, document, best first. With the
model of a KeyVec it prints the k key sentences of each text, with their
probabilities, and its k key words.

Example:
  lstm-dssm-query --server=127.0.0.1:8500 --k=3 "angle bracket" "deck screws"
  lstm-dssm-query --tags=steel,zinc "angle bracket"
  lstm-dssm-query --server=db1:8500 --tls_ca=ca.crt --token_file=tokens "bolt"
  lstm-dssm-query --server=127.0.0.1:8500 --model=retriever --status
  lstm-dssm-query --model=scorer "angle bracket" "steel angle" "wood glue"
  lstm-dssm-query --model=keyvec --k=1 "A list is sorted. See below."
"""

from keras_lstm_dssm.command_line import CommandLine, definers, new_flags
from keras_lstm_dssm.tools.door_flags import define_door_flags

FLAGS = new_flags()
define = definers(FLAGS)
define.string("server", "127.0.0.1:8500", "The server's gRPC address.")
define.string(
    "model", None,
    "The model's name on the server; by default retriever, or query_encoder "
    "with --vectors.",
)  # fmt: skip
define.integer(
    "k", 5, "Number of documents for each query, or of key sentences.", 1
)
define.list(
    "tags", [],
    "Only documents that have any of these tags, separated by commas; by "
    "default all.",
)  # fmt: skip
define.bool("vectors", False, "Print the queries' vectors instead.")
define.string(
    "version", None,
    "The model's version, a number or a label; by default the newest.",
)  # fmt: skip
define.bool(
    "status", False, "Print the states of the model's versions instead."
)
define.float("timeout", 5.0, "Seconds to wait for a reply.", 1e-3)
define_door_flags(define)

COMMAND_LINE = CommandLine(
    __doc__, FLAGS, required=["server"], arguments=True, tensorflow=False
)
