r"""Train and measure the systems of the paper's Table IV on one data set.

Example:
  lstm-dssm-table_iv --data=FOLDER --systems=all --seeds=3 --epochs=30 \
      --output=OUT
  lstm-dssm-table_iv --data=api --systems=random,bm25,dssm,lstm_96 \
      --seeds=1 --epochs=1 --output=OUT

`--data` is `api`, or a BEIR folder with the splits dev and test. The
hyperparameters (learning rate and gamma; k1, b and words of BM25; ...) are
chosen on dev by the same small search for all systems of a kind. OUT holds
table.md, table.json, table.html, chart.png, dev.png and .csv, figure_7.png and
.csv; with --misspelled robustness.md, .json and .png; with --pairs curve.csv
and curve.MODE.png; and systems/NAME/seed_S/ with the measures and the TREC
runs. Finished systems are not run again, so that a table can be interrupted,
and more systems or seeds can be named later. The exit code is 1 if a system
failed; the table then holds the others.
"""

import os
import sys
from pathlib import Path
from typing import Any

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import write_json
from keras_lstm_dssm.folder_lock import lock_folder
from keras_lstm_dssm.tables import (
    TABLE_IV_ROWS,
    Row,
    TableSettings,
    check_pairs,
    choose_rows,
    open_table_data,
    read_results,
    run_learning_curve,
    run_systems,
    train_with_one_gamma,
    write_report,
)
from keras_lstm_dssm.tools.program import definers, new_flags, program

FLAGS = new_flags()
define = definers(FLAGS)
define.string("data", None, "`api`, or a BEIR folder.")
define.string("output", None, "Folder of the table.")
define.list("systems", ["all"], "Systems, such as bm25,lstm_96, or `all`.")
define.integer("seeds", 3, "Number of trainings of each system.", 1)
define.integer(
    "epochs", 30,
    "Passes over the clicks; the best epoch on dev is measured on test. "
    "`best` has the epochs of its own recipe.",
    1,
)  # fmt: skip
define.integer(
    "batch_size", 256,
    "Clicks in a training batch. `best` has the batch size of its own recipe.",
    2,
)  # fmt: skip
define.integer(
    "min_relevant", 1,
    "Grade from which a document is relevant in retrieval, and clicked "
    "where the data has no click log.", 1,
)  # fmt: skip
define.integer(
    "depth", 1000, "Number of documents retrieved for each query.", 100
)
define.list(
    "learning_rates", ["0.003", "0.01", "0.03", "0.1"],
    "Learning rates to choose from on dev.",
)  # fmt: skip
define.list(
    "gammas", ["5", "3", "10"],
    "Scales of the cosines to choose from on dev; every learning rate is "
    "tried with the first one.",
)  # fmt: skip
define.float(
    "search", 0.15, "Share of --epochs that each trial on dev lasts.", 0, 1
)
define.integer(
    "dev_evaluations", 5, "Number of evaluations on dev during a training.", 1
)
define.list(
    "misspelled", [],
    "Also measure with these shares of the query words misspelled: 0.1,0.2.",
)  # fmt: skip
define.list(
    "pairs", [],
    "Also train on about this many clicks, for a learning curve: 1000,10000.",
)  # fmt: skip
define.integer(
    "judged_negatives", 0,
    "Number of further negatives for each click, from the documents "
    "judged below --min_relevant for its query.", 0,
)  # fmt: skip
define.string(
    "paragraphs", None,
    "Text file for Skip-Thought, a sentence on each line, blank lines between "
    "paragraphs; by default docstrings of installed packages.",
)  # fmt: skip
define.integer(
    "threads", None, "Number of processor cores to use; by default all.", 1
)


def main(_: list[str]) -> dict[str, Any]:
    """Runs unfinished systems, writes the report and returns its content."""
    rows = choose_rows(TABLE_IV_ROWS, FLAGS.systems)
    output = Path(FLAGS.output)
    pairs = [int(n) for n in _numbers("pairs", 1, float("inf"))]
    settings = TableSettings(
        learning_rates=_numbers("learning_rates", 1e-9, float("inf")),
        gammas=_numbers("gammas", 1e-9, float("inf")),
        # The table itself has no misspelled queries.
        misspelled=tuple(r for r in _numbers("misspelled", 0, 1) if r),
        **{
            name: FLAGS[name].value
            for name in (
                "data", "epochs", "batch_size", "min_relevant", "depth",
                "search", "dev_evaluations", "paragraphs", "judged_negatives",
            )
        },
    )  # fmt: skip
    if not settings.learning_rates or not settings.gammas:
        raise InputError("--learning_rates and --gammas need a number each")
    if FLAGS.threads:  # read by TensorFlow, PyTorch and BLAS when they start
        for name in ("TF_NUM_INTRAOP_THREADS", "OMP_NUM_THREADS"):
            os.environ[name] = str(FLAGS.threads)
    with lock_folder(output, "making a table"):
        return _make_table(output, rows, settings, pairs)


def _make_table(
    output: Path,
    rows: dict[str, Row],
    settings: TableSettings,
    pairs: list[int],
) -> dict[str, Any]:
    data = open_table_data(settings, output)
    check_pairs(pairs, data)
    settings.record(output, data.sizes)
    failed = run_systems(output, rows, settings, FLAGS.seeds)
    results = read_results(output, rows, FLAGS.seeds)
    if not results:
        raise InputError(
            f"{output}: no system could be measured ({_reasons(failed)})"
        )
    pictures: dict[str, Path] = {}
    if pairs:
        curves, failed_parts = run_learning_curve(
            output, data, results, settings, FLAGS.seeds, pairs
        )
        failed |= failed_parts
        pictures = {f"Learning curve, {m}": path for m, path in curves.items()}
    costs, failed_costs = train_with_one_gamma(
        output, results, settings, data.sizes
    )
    failed |= {f"{name} of Figure 7": r for name, r in failed_costs.items()}
    summary = write_report(output, data, results, failed, costs, pictures)
    print((output / "table.md").read_text(encoding="utf-8"))
    if failed:
        if FLAGS.json:
            write_json(FLAGS.json, summary)
        raise InputError(
            f"{output}: the table lacks what failed ({_reasons(failed)}):"
            " remove the cause and run the same command again, which runs only"
            " what is missing"
        )
    return summary


def _reasons(failed: dict[str, str]) -> str:
    return "; ".join(f"{name}: {reason}" for name, reason in failed.items())


def _numbers(name: str, least: float, most: float) -> tuple[float, ...]:
    """Returns the numbers of a list flag.

    Raises:
        InputError: One is not a number, or out of bounds.
    """
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
