r"""Encode texts into vectors with an exported encoder.

Example:
  lstm-dssm-encode --saved_model=MODELS/document_encoder \
      --input=titles.txt --output=vectors.npy --ids=vectors.ids
  lstm-dssm-encode --saved_model=MODELS/document_encoder \
      --input="titles-*.tsv.gz" --output=PARTS --shard=3/16

The input has one text a line, compressed by gzip or not; an empty line is an
empty text. The output is a NumPy array, float32 [lines, d], with rows of unit
length, which faiss and ScaNN read. With --ids the input is a file of documents
as lstm-dssm-export --documents reads it: one title a line, or an id, a tab and
a title. The ids are then written too, line i for row i of the array.

A folder of documents, or a file of JSON lines (.jsonl or .jsonl.gz), has the
form of docs/documents.md: the output has one row for each document.

With --shard, --rows_per_file, --format or --workers the titles are streamed
into parts in the folder --output, with their ids; parts that are complete are
not encoded again (docs/scaling.md). Each shard is a process of its own, and
--workers starts them with Ray. lstm-dssm-index and lstm-dssm-export read the
folder.
"""

from keras_lstm_dssm.command_line import CommandLine, definers, new_flags
from keras_lstm_dssm.tools.encode_flags import define_part_flags

FLAGS = new_flags()
define = definers(FLAGS)
define.string(
    "saved_model", None,
    "Folder of an exported encoder or KeyVec, of which the newest version that "
    "models.config serves is used; or the folder of one version.",
)  # fmt: skip
define.string(
    "input", None,
    "File of texts, one a line; or documents in JSON. For parts: titles, or "
    "ids, a tab and titles, perhaps one more tab and tags; also .parquet with "
    "the columns title, id and tags, globs, and several files separated by "
    "commas.",
)  # fmt: skip
define.string("output", None, "The .npy file to write, or the folder of parts.")
define.string("ids", None, "File to write the documents' ids to.")
define_part_flags(FLAGS)

COMMAND_LINE = CommandLine(
    __doc__, FLAGS, required=["saved_model", "input", "output"]
)
