"""Search with an exported retriever, in this process.

Prints the ids of the best documents for each query with their scores. Where
the documents were exported without ids, their ids are their titles.

Example:
  lstm-dssm-search --models=MODELS "angle bracket"
"""

import sys
from typing import Any

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.model_versions import model_folder
from keras_lstm_dssm.serving import SavedRetriever
from keras_lstm_dssm.tools.program import definers, new_flags, program
from keras_lstm_dssm.tools.query import print_hits

FLAGS = new_flags()
define = definers(FLAGS)
_MODELS = define.string("models", None, "Folder that lstm-dssm-export wrote.")
_MODEL = define.string("model", "retriever", "The retriever's name.")
_K = define.integer("k", 5, "Number of documents for each query.", 1)


def main(queries: list[str]) -> dict[str, Any]:
    """Prints and returns the best documents of each query."""
    if not queries:
        raise InputError('no query; give one or more, such as "angle bracket"')
    retriever = SavedRetriever(model_folder(_MODELS.value, _MODEL.value))
    return print_hits(queries, retriever.search(queries, _K.value))


run = program(main, FLAGS, __doc__, required=["models"], arguments=True)

if __name__ == "__main__":
    sys.exit(run())
