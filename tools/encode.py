r"""Encode texts with an exported encoder.

Example:
  lstm-dssm-encode --saved_model=MODELS/document_encoder \
      --input=titles.txt --output=vectors.npy --ids=vectors.ids

The input has one text a line, gzip or not; an empty line is an empty text.
The output is a NumPy array, float32 [lines, d], rows of unit length, as
faiss and ScaNN read it. With --ids the input is one for lstm-dssm-export
--documents, a title or an id, a tab and a title a line, and the ids are
written too, line i for row i.
"""

import sys
import time
from typing import Any

from absl import flags

from keras_lstm_dssm.data.text_files import text_lines
from keras_lstm_dssm.export.documents import read_documents
from keras_lstm_dssm.export.vector_files import write_ids, write_vectors
from keras_lstm_dssm.files import check_writable
from keras_lstm_dssm.serving.saved_models import SavedEncoder
from keras_lstm_dssm.tools.program import new_flags, program

FLAGS = new_flags()
_MODEL = flags.DEFINE_string(
    "saved_model",
    None,
    "Folder of an exported encoder.",
    flag_values=FLAGS,
)
_INPUT = flags.DEFINE_string(
    "input", None, "Texts, one a line.", flag_values=FLAGS
)
_OUTPUT = flags.DEFINE_string(
    "output", None, "The .npy file to write.", flag_values=FLAGS
)
_IDS = flags.DEFINE_string(
    "ids", None, "Also write the titles' ids to this file.", flag_values=FLAGS
)


def main(_: list[str]) -> dict[str, Any]:
    """Encodes the file; returns the array's shape and the speed."""
    check_writable(_OUTPUT.value)
    ids: list[str] = []
    if _IDS.value:
        check_writable(_IDS.value)
        ids, texts = read_documents(_INPUT.value)
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
