"""Evaluates a trained model and BM25 by NDCG, MRR, MAP, P@k and recall@k.

This is the work of the program lstm-dssm-evaluate. Its help and its
flags are in `tools/flags/evaluate.py`, which is imported first and without
TensorFlow.
"""

import sys
from typing import Any

from keras_lstm_dssm.analysis.evaluate import evaluate_run
from keras_lstm_dssm.papers.baselines import document_baselines
from keras_lstm_dssm.tensorflow_start import use_one_intra_op_thread
from keras_lstm_dssm.tools.flags.evaluate import COMMAND_LINE, FLAGS

_OF_TITLES = (
    "mode", "depth", "run_file", "bm25_words", "batch_size", "mix",
    "mix_weights", "dev", "select",
)  # fmt: skip
"""Flags that are not supported for a KeyVec."""


def main(_: list[str]) -> dict[str, Any]:
    """Returns split -> the results, which are printed as they come."""
    use_one_intra_op_thread()
    return evaluate_run(
        FLAGS.run,
        FLAGS.data,
        FLAGS.split,
        FLAGS.min_relevant,
        document_baselines,
        progress=sys.stderr.isatty(),
        report=print,
        **flags_of_titles(),
    )


def flags_of_titles() -> dict[str, Any]:
    """Returns the flags about rankings of titles that are given."""
    flags = [FLAGS[name] for name in _OF_TITLES]
    return {flag.name: flag.value for flag in flags if flag.present}


run = COMMAND_LINE.program(main)

if __name__ == "__main__":
    sys.exit(run())
