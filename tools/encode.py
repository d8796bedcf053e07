"""Encodes texts into files of vectors with an exported encoder.

This is the work of the program lstm-dssm-encode. Its help and its flags are in
`tools/flags/encode.py`, which is imported first and without TensorFlow.
"""

import sys
import time
from typing import Any

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.bulk.documents import (
    has_json_documents,
    read_documents,
)
from keras_lstm_dssm.export.bulk.parts import write_ids, write_vectors
from keras_lstm_dssm.files import check_writable
from keras_lstm_dssm.serving.saved_models import SavedEncoder
from keras_lstm_dssm.tensorflow_start import use_one_intra_op_thread
from keras_lstm_dssm.text_files import text_lines
from keras_lstm_dssm.tools.encode_flags import PART_FLAGS
from keras_lstm_dssm.tools.encode_into_parts import encode_by_flags
from keras_lstm_dssm.tools.flags.encode import COMMAND_LINE, FLAGS


def main(_: list[str]) -> dict[str, Any]:
    """Encodes the texts and returns the array's shape and the speed."""
    use_one_intra_op_thread()
    if any(FLAGS[name].present for name in PART_FLAGS):
        if FLAGS.ids:
            raise InputError(
                "--ids is a flag for one .npy file: leave it out, since parts "
                "have their ids"
            )
        return encode_by_flags(FLAGS)
    check_writable(FLAGS.output)
    ids: list[str] = []
    if FLAGS.ids:
        check_writable(FLAGS.ids)
    if FLAGS.ids or has_json_documents(FLAGS.input):
        documents = read_documents(FLAGS.input)
        ids, texts = documents.ids, documents.titles
    else:
        texts = list(text_lines(FLAGS.input, blank_end=True))
    encoder = SavedEncoder(FLAGS.saved_model)
    start = time.perf_counter()
    vectors = encoder.encode(texts, progress=sys.stderr.isatty())
    seconds = time.perf_counter() - start
    write_vectors(FLAGS.output, vectors)
    if FLAGS.ids:
        write_ids(FLAGS.ids, ids)
    speed = len(texts) / seconds
    print(f"wrote {FLAGS.output}: {vectors.shape}, {speed:,.0f} texts/s")
    return {"shape": vectors.shape, "texts_per_second": speed}


run = COMMAND_LINE.program(main)

if __name__ == "__main__":
    sys.exit(run())
