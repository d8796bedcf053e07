"""Export a trained model for TF Serving.

Example:
  lstm-dssm-export --run=build/run --documents=titles.txt --output=MODELS

Writes query_encoder/, document_encoder/ and, with --documents, retriever/,
each with a new version; a server that runs on MODELS sees whole versions
only. titles.txt has one title a line, or an id, a tab and a title.
--vectors=int8 makes the retriever a quarter as large; docs/serving.md says
what that costs.
"""

import sys
from typing import Any

from absl import flags

from keras_lstm_dssm.export.documents import VECTORS, read_documents
from keras_lstm_dssm.export.export_models import export_models
from keras_lstm_dssm.tools.program import new_flags, program
from keras_lstm_dssm.training import load_run

FLAGS = new_flags()
_RUN = flags.DEFINE_string(
    "run", None, "Folder of a trained run.", flag_values=FLAGS
)
_OUTPUT = flags.DEFINE_string(
    "output", None, "Folder of the models.", flag_values=FLAGS
)
_DOCUMENTS = flags.DEFINE_string(
    "documents", None, "Titles to find, .txt or .gz.", flag_values=FLAGS
)
_VECTORS = flags.DEFINE_enum(
    "vectors", "float32", list(VECTORS),
    "How the retriever holds the titles' vectors.",
    flag_values=FLAGS,
)  # fmt: skip


def main(_: list[str]) -> dict[str, Any]:
    """Exports; returns the new folders."""
    documents = None
    if _DOCUMENTS.value:
        documents = read_documents(_DOCUMENTS.value)
        print(f"{len(documents.ids):,} documents")
    folders = export_models(
        load_run(_RUN.value),
        _OUTPUT.value,
        documents,
        _VECTORS.value,
        progress=sys.stderr.isatty(),
    )
    for folder in folders:
        print(f"wrote {folder}")
    return {"folders": [str(folder) for folder in folders]}


run = program(main, FLAGS, __doc__, required=["run", "output"])

if __name__ == "__main__":
    sys.exit(run())
