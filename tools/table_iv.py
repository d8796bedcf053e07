r"""Trains and measures every system of the paper's Table IV on one data set.

Example:
  lstm-dssm-table_iv --data=FOLDER --systems=all --seeds=3 --epochs=30 \
      --output=OUT
  lstm-dssm-table_iv --data=api --systems=random,bm25,dssm,lstm_96 \
      --seeds=1 --epochs=1 --output=OUT

`--data` is `api` or a BEIR folder with the splits dev and test. What is to be
chosen (learning step and gamma; k1, b and words of BM25; ...) is chosen on
dev by the same small search for all systems of a kind. OUT gets table.md,
table.json, table.html, chart.png, figure_7.png and .csv, with --misspelled
robustness.md, .json and .png, with --pairs curve.csv and .png, and
systems/NAME/seed_S/ with the figures and the TREC runs. What is finished
there is not run again: interrupt it, or name more systems or seeds, at will.
"""

import os
import sys
from pathlib import Path
from typing import Any

from absl import flags

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.tables import (
    Settings,
    check_pairs,
    choose_rows,
    learning_curve,
    open_dataset,
    read_results,
    run_isolated,
    write_report,
)
from keras_lstm_dssm.tools.program import new_flags, program

FLAGS = new_flags()
flags.DEFINE_string(
    "data", None, "`api`, or a folder in BEIR's form.", flag_values=FLAGS
)
flags.DEFINE_string("output", None, "Folder of the table.", flag_values=FLAGS)
flags.DEFINE_list("systems", ["all"], "Systems, or `all`.", flag_values=FLAGS)
flags.DEFINE_integer(
    "seeds", 3, "Trainings of each system.", 1, flag_values=FLAGS
)
flags.DEFINE_integer(
    "epochs", 30, "Passes over the clicks, at most: the best on dev is kept.",
    1, flag_values=FLAGS,
)  # fmt: skip
flags.DEFINE_integer(
    "batch_size", 256, "Clicks in an update.", 2, flag_values=FLAGS
)
flags.DEFINE_integer(
    "min_relevant", 1,
    "Grade from which a title counts as relevant in the whole corpus, and as "
    "clicked where there is no click file.", 1,
    flag_values=FLAGS,
)  # fmt: skip
flags.DEFINE_integer(
    "depth", 1000, "Titles found for each query in the corpus.", 100,
    flag_values=FLAGS,
)  # fmt: skip
flags.DEFINE_list(
    "learning_rates", ["0.003", "0.01", "0.03", "0.1"],
    "Steps to choose from on dev.",
    flag_values=FLAGS,
)  # fmt: skip
flags.DEFINE_list(
    "gammas", ["5", "3", "10"],
    "Scales of the cosines to choose from on dev; the first one is used to "
    "choose the step.",
    flag_values=FLAGS,
)  # fmt: skip
flags.DEFINE_float(
    "search", 0.15, "Share of the epochs that each trial on dev takes.", 0, 1,
    flag_values=FLAGS,
)  # fmt: skip
flags.DEFINE_integer(
    "looks", 5, "How often a training is measured on dev.", 1,
    flag_values=FLAGS,
)  # fmt: skip
flags.DEFINE_list(
    "misspelled", [],
    "Also measure with these shares of the query words misspelled: 0.1,0.2.",
    flag_values=FLAGS,
)  # fmt: skip
flags.DEFINE_list(
    "pairs", [],
    "Also train on about so many clicks, for a learning curve: 1000,10000.",
    flag_values=FLAGS,
)  # fmt: skip
flags.DEFINE_integer(
    "judged_negatives", 0,
    "Also this many negatives a click, of titles that were judged below "
    "--min_relevant for its query.", 0,
    flag_values=FLAGS,
)  # fmt: skip
flags.DEFINE_string(
    "paragraphs", None,
    "Text for Skip-Thought, a sentence a line, blank lines between "
    "paragraphs; by default the doc strings on this machine.",
    flag_values=FLAGS,
)  # fmt: skip
flags.DEFINE_integer(
    "threads", None, "Processor cores to use; all by default.", 1,
    flag_values=FLAGS,
)  # fmt: skip


def main(_: list[str]) -> dict[str, Any]:
    """Runs what is missing, writes the report and returns its figures."""
    names = choose_rows(FLAGS.systems)
    output = Path(FLAGS.output)
    pairs = [int(n) for n in _numbers("pairs", 1, float("inf"))]
    settings = Settings(
        learning_rates=_numbers("learning_rates", 1e-9, float("inf")),
        gammas=_numbers("gammas", 1e-9, float("inf")),
        # 0 % is the table itself.
        misspelled=tuple(r for r in _numbers("misspelled", 0, 1) if r),
        **{
            name: FLAGS[name].value
            for name in (
                "data", "epochs", "batch_size", "min_relevant", "depth",
                "search", "looks", "paragraphs", "judged_negatives",
            )
        },
    )  # fmt: skip
    if not settings.learning_rates or not settings.gammas:
        raise InputError("--learning_rates and --gammas need a number each")
    if FLAGS.threads:  # read by TensorFlow, PyTorch and BLAS when they start
        for name in ("TF_NUM_INTRAOP_THREADS", "OMP_NUM_THREADS"):
            os.environ[name] = str(FLAGS.threads)
    data = open_dataset(settings, output)
    check_pairs(pairs, data)
    settings.record(output, data.sizes)
    failed = run_isolated(output, names, settings, FLAGS.seeds)
    results = read_results(output, names, FLAGS.seeds)
    if not results:
        raise InputError(f"{output}: no system could be measured: {failed}")
    curves = {}
    if pairs:
        curves = learning_curve(
            output, data, results, settings, FLAGS.seeds, pairs
        )
    summary = write_report(
        output,
        data,
        results,
        failed,
        settings,
        {f"Learning curve, {mode}": path for mode, path in curves.items()},
    )
    print((output / "table.md").read_text(encoding="utf-8"))
    return summary


def _numbers(name: str, least: float, most: float) -> tuple[float, ...]:
    """Reads a list flag of numbers within bounds."""
    try:
        numbers = tuple(float(text) for text in FLAGS[name].value)
        if all(least <= number <= most for number in numbers):
            return numbers
    except ValueError:
        pass
    raise InputError(
        f"--{name}={','.join(FLAGS[name].value)}: expected numbers from"
        f" {least:g} to {most:g}, separated by commas"
    )


run = program(main, FLAGS, __doc__, required=["data", "output"])

if __name__ == "__main__":
    sys.exit(run())
