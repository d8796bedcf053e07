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

import sys
import time
from typing import Any

from keras_lstm_dssm.data.line_reader import text_lines
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.documents import (
    has_json_documents,
    read_documents,
    write_ids,
    write_vectors,
)
from keras_lstm_dssm.files import check_writable
from keras_lstm_dssm.serving.saved_models import SavedEncoder
from keras_lstm_dssm.tools.encode_flags import (
    PART_FLAGS,
    define_part_flags,
    encode_by_flags,
)
from keras_lstm_dssm.tools.program import definers, new_flags, program

FLAGS = new_flags()
define = definers(FLAGS)
_MODEL = define.string(
    "saved_model", None,
    "Folder of an exported encoder or KeyVec, of which the newest version that "
    "models.config serves is used; or the folder of one version.",
)  # fmt: skip
_INPUT = define.string(
    "input", None,
    "File of texts, one a line; or documents in JSON. For parts: titles, or "
    "ids, a tab and titles, perhaps one more tab and tags; also .parquet with "
    "the columns title, id and tags, globs, and several files separated by "
    "commas.",
)  # fmt: skip
_OUTPUT = define.string(
    "output", None, "The .npy file to write, or the folder of parts."
)
_IDS = define.string("ids", None, "File to write the documents' ids to.")
define_part_flags(FLAGS)


def main(_: list[str]) -> dict[str, Any]:
    """Encodes the texts and returns the array's shape and the speed."""
    if any(FLAGS[name].present for name in PART_FLAGS):
        if _IDS.value:
            raise InputError(
                "--ids is a flag for one .npy file: leave it out, since parts "
                "have their ids"
            )
        return encode_by_flags(FLAGS)
    check_writable(_OUTPUT.value)
    ids: list[str] = []
    if _IDS.value:
        check_writable(_IDS.value)
    if _IDS.value or has_json_documents(_INPUT.value):
        documents = read_documents(_INPUT.value)
        ids, texts = documents.ids, documents.titles
    else:
        texts = list(text_lines(_INPUT.value, blank_end=True))
    encoder = SavedEncoder(_MODEL.value)
    start = time.perf_counter()
    vectors = encoder.encode(texts, progress=sys.stderr.isatty())
    seconds = time.perf_counter() - start
    write_vectors(_OUTPUT.value, vectors)
    if _IDS.value:
        write_ids(_IDS.value, ids)
    speed = len(texts) / seconds
    print(f"wrote {_OUTPUT.value}: {vectors.shape}, {speed:,.0f} texts/s")
    return {"shape": vectors.shape, "texts_per_second": speed}


run = program(main, FLAGS, __doc__, required=["saved_model", "input", "output"])

if __name__ == "__main__":
    sys.exit(run())
