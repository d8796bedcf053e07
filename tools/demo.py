"""Demonstrate the whole pipeline on text that every machine has.

Builds the API-search corpus, trains `best`, evaluates it with BM25 and random
order for comparison, exports it, serves it on a free port, searches for four
questions over gRPC and writes a report on a query and a title (report.html).
Each step is one of the programs, whose command line is printed. `make demo`
runs this program. It ends with what was trained, how good it is, where the
files are, and what to do next; nothing is left running.

Example:
  python tools/demo.py --output=build/demo
"""

import os
import shlex
import shutil
import sys
import time
from pathlib import Path
from types import ModuleType

from absl import app

from lstm_dssm_programs import load_package
from keras_lstm_dssm.command_line import Program
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import write_text
from keras_lstm_dssm.settings.recipes import PRESETS
from keras_lstm_dssm.tools.search import print_hits

program = Program(__doc__, required=["output", "data"])
FLAGS = program.flags
program.string(
    "output", "build/demo",
    "Folder to write; the files of an earlier demo are removed.",
)  # fmt: skip
program.string("data", "api", "`api` or a BEIR folder.")
program.enum(
    "preset", "best",  # these two are fitted to a teacher
    [name for name in PRESETS if name not in ("word_sum", "best_words")],
    "Recipe to train.",
)  # fmt: skip
program.integer(
    "epochs", None, "Passes over the pairs; by default the preset's.", 1
)


QUESTIONS = (
    "how do I split a string on whitespace",
    "write rows to a csv file",
    "remove a directory",
    "calculate the mean of an aray",  # misspelled on purpose
)
_FIGURES = ("mrr@10", "recall@10")
# The title shares no word with the query.
PAIR = "compute the inverse of a matrix", "numpy linalg inv"


@program.main
def main(_: list[str]) -> None:
    """Runs every step; the first one that fails ends the demo."""
    load_package()
    from keras_lstm_dssm.data import open_collection, write_pairs
    from keras_lstm_dssm.serving import Client, PredictionServer
    from keras_lstm_dssm.tools import analyze, evaluate, export, train

    start = time.perf_counter()
    print(
        f"This demo trains a search model (preset {FLAGS.preset}) on the "
        "docstrings of the Python packages on this machine, measures it beside "
        "BM25, exports it and searches with it.\nIt takes 1 to 3 minutes on "
        "2 idle cores.",
        flush=True,
    )
    output = Path(FLAGS.output)
    models, titles = output / "models", output / "titles.txt"
    collection = open_collection(FLAGS.data)
    for old in (output / "run", models):
        if old.exists() and not titles.exists():  # which a demo writes first
            raise InputError(
                f"{old}: found a folder that is not of an earlier demo, which"
                " would be removed: give another --output"
            )
        shutil.rmtree(old, ignore_errors=True)
    output.mkdir(parents=True, exist_ok=True)
    print(f"API search: {collection.describe()}")
    write_text(titles, "\n".join(collection.documents.values()) + "\n")
    # For `lstm-dssm-train --init --replay`, see docs/local_server.md.
    clicks = output / "old_clicks.tsv"
    write_pairs(collection.training_log(write_to=clicks), clicks)

    data, folder = f"--data={FLAGS.data}", output / "run"
    epochs = [f"--epochs={FLAGS.epochs}"] if FLAGS.epochs else []
    preset = f"--preset={FLAGS.preset}"
    _step(train, data, preset, *epochs, f"--output={folder}")
    run_flag = f"--run={folder}"
    _step(evaluate, run_flag, data, "--split=test", "--mode=retrieve")
    _step(export, run_flag, f"--documents={titles}", f"--output={models}")
    with PredictionServer(models, port=0) as server:
        address = f"127.0.0.1:{server.port}"
        print(f"\nserving {models} on {address}")
        with Client(address) as client:
            print_hits(QUESTIONS, client.search(QUESTIONS, k=5))
    pair = f"--query={PAIR[0]}", f"--document={PAIR[1]}"
    _step(analyze, run_flag, data, *pair, f"--output={output / 'report.html'}")
    seconds = time.perf_counter() - start
    print("\n" + "\n".join(summary(output, FLAGS.preset, seconds)))


def summary(output: Path, preset: str, seconds: float) -> list[str]:
    """Returns the five lines at the end: results, files, next commands."""
    from keras_lstm_dssm.run_folder import RunFolder

    run = RunFolder(output / "run")
    pairs = run.read_config()["pairs"]
    epochs = len(run.read_history())
    measured = run.read_metrics()["test/retrieve"]
    figures = "; ".join(
        f"{name} "
        + ", ".join(f"{m} {100 * measured[key][m]:.1f}" for m in _FIGURES)
        for name, key in ((preset, "model"), ("BM25", "bm25"))
    )
    models = output / "models"
    programs = os.path.relpath(Path(sys.executable).parent)
    commands = (
        f'{programs}/lstm-dssm-search --models={models} "split a string"',
        "make page",
        f"{programs}/lstm-dssm-train --data=YOUR_CLICKS.tsv --output=RUN",
    )
    return [
        f"trained   {preset}: {pairs:,} pairs (clicks, and words of titles), "
        f"{epochs} epochs; the whole demo took {seconds:.0f} s",
        f"measured  unseen queries, all titles: {figures}",
        f"report    {output / 'report.html'}, card {run.path / 'CARD.md'}",
        f"models    {models}; `make page` shows a page for searching them at "
        "http://127.0.0.1:8501/",
        f"next      {'  |  '.join(commands)}",
    ]


def _step(module: ModuleType, *flags: str) -> None:
    """Runs a program as its command line would."""
    name = f"lstm-dssm-{module.__name__.rpartition('.')[2]}"
    print("\n$", shlex.join([name, *flags]), flush=True)
    if module.program.run([name, *flags]):
        raise InputError(f"{name} failed")


if __name__ == "__main__":
    app.run(main, flags_parser=program.parse)
