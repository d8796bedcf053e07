r"""Encode texts with an exported encoder.

Example:
  lstm-dssm-encode --saved_model=MODELS/document_encoder \
      --input=titles.txt --output=vectors.npy

The input has one text a line, gzip or not; an empty line is an empty text.
The output is a NumPy array, float32 [lines, d], rows of unit length.
"""

import sys
import time
from typing import Any

import numpy as np
from absl import flags

from keras_lstm_dssm.export.documents import read_lines
from keras_lstm_dssm.export.saved_encoder import SavedEncoder
from keras_lstm_dssm.files import check_writable, replacing
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


def main(_: list[str]) -> dict[str, Any]:
    """Encodes the file; returns the array's shape and the speed."""
    check_writable(_OUTPUT.value)
    texts = list(read_lines(_INPUT.value))
    encoder = SavedEncoder(_MODEL.value)
    start = time.perf_counter()
    vectors = encoder.encode(texts, progress=sys.stderr.isatty())
    seconds = time.perf_counter() - start
    with replacing(_OUTPUT.value) as partial, partial.open("wb") as file:
        np.save(file, vectors)
    speed = len(texts) / seconds
    print(f"wrote {_OUTPUT.value}: {vectors.shape}, {speed:,.0f} texts/s")
    return {"shape": vectors.shape, "texts_per_second": speed}


run = program(main, FLAGS, __doc__, required=["saved_model", "input", "output"])

if __name__ == "__main__":
    sys.exit(run())
