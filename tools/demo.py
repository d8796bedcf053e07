"""Demonstrate the whole pipeline on text that every machine has.

Writes the docstrings of installed Python packages as a shop's data: a catalogue
of functions, a log of clicks, and judgements. Then runs prepare, train,
evaluate, export, search and analyze, and prints their command lines.
`make demo` runs this demo.

Example:
  python tools/demo.py --output=build/demo
"""

import importlib
import importlib.util
import os
import shlex
import shutil
import sys
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from absl import app

from lstm_dssm_programs import PROGRAMS, load_package
from keras_lstm_dssm.command_line import Program
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import write_csv

if TYPE_CHECKING:
    from keras_lstm_dssm.data import Collection

program = Program(__doc__, required=["output"])
FLAGS = program.flags
program.string("output", "build/demo", "Folder; an earlier demo is replaced.")
program.integer("epochs", None, "Epochs (default: as in the preset `best`).", 1)

QUESTIONS = (
    "how do I split a string on whitespace",
    "write rows to a csv file",
    "remove a directory",
    "calculate the mean of an aray",  # misspelled on purpose
)
# A query, and a relevant title that shares no word with the query.
PAIR = "compute the inverse of a matrix", "numpy linalg inv"


@program.main
def main(_: list[str]) -> None:
    """Runs every step; the first failure ends the demo."""
    load_package()
    from keras_lstm_dssm.data import open_collection

    print(
        "This demo learns to search the functions of this machine's Python"
        " packages by their descriptions, in 1 to 3 minutes on 2 idle cores.",
        flush=True,
    )
    output = Path(FLAGS.output)
    catalogue, shop = output / "catalogue.csv", output / "shop"
    folder, models = output / "run", output / "models"
    collection = open_collection("api")
    for old in (shop, folder, models):
        if old.exists() and not catalogue.exists():
            raise InputError(
                f"{old}: found a folder that is not of an earlier demo, and"
                " that this demo would remove: give another --output"
            )
        shutil.rmtree(old, ignore_errors=True)
    output.mkdir(parents=True, exist_ok=True)
    write_sources(collection, output)

    run, data = f"--run={folder}", f"--data={shop}"
    _run_program(
        "prepare", f"--catalogue={catalogue}", "--tags=package",
        f"--clicks={output / 'clicks.csv'}",
        f"--judgements={output / 'judgements.csv'}", f"--output={shop}",
    )  # fmt: skip
    epochs = [f"--epochs={FLAGS.epochs}"] if FLAGS.epochs else []
    _run_program("train", data, "--preset=best", *epochs, f"--output={folder}")
    _run_program("evaluate", run, data, "--queries=3")
    _run_program("export", run, data, f"--output={models}")
    _run_program("search", f"--models={models}", *QUESTIONS)
    pair = f"--query={PAIR[0]}", f"--document={PAIR[1]}"
    _run_program(
        "analyze", run, data, *pair, f"--output={output / 'report.html'}"
    )
    print("\n" + "\n".join(summary(output)))


def write_sources(collection: "Collection", folder: Path) -> None:
    """Writes a catalogue, a log of clicks, and judgements of the test split."""
    words = {title.split()[0] for title in collection.documents.values()}
    packages = {
        word
        for word in words - sys.stdlib_module_names
        if importlib.util.find_spec(word)
    }
    products = []
    for product_id, title in collection.documents.items():
        (first, *_) = title.split()
        package = first if first in packages else "python"
        products.append({"id": product_id, "title": title, "package": package})
    clicks = {
        split: [
            {"query": collection.queries[query], "id": product_id}
            for query, judged in collection.qrels(split).items()
            for product_id in judged
        ]
        for split in collection.splits
    }
    write_csv(folder / "catalogue.csv", products)
    write_csv(folder / "clicks.csv", [*chain(*clicks.values())])
    judgements = [{**click, "grade": 1} for click in clicks["test"]]
    write_csv(folder / "judgements.csv", judgements)


def summary(output: Path) -> list[str]:
    """Returns the last lines to print: results, files, next commands."""
    from keras_lstm_dssm.run_folder import RunFolder

    run, models = RunFolder(output / "run"), output / "models"
    measured = run.read_metrics()["test/retrieve"]
    best, bm25 = (
        ", ".join(
            f"{m} {100 * metrics[m]:.1f}" for m in ("mrr@10", "recall@10")
        )
        for metrics in (measured["model"], measured["bm25"])
    )
    search = os.path.relpath(Path(sys.executable).parent / "lstm-dssm-search")
    return [
        f"measured  unseen queries, all titles: best {best}; BM25 {bm25}",
        f"report    {output / 'report.html'}, card {run.path / 'CARD.md'}",
        f'next      {search} --models={models} --tags=package:numpy "mean"',
        "          make page, which searches at http://127.0.0.1:8501/",
        "          docs/shop.md, the same with your own files",
    ]


def _run_program(name: str, *flags: str) -> None:
    command = [f"lstm-dssm-{name}", *flags]
    print("\n$", shlex.join(command), flush=True)
    if importlib.import_module(PROGRAMS[name]).program.run(command):
        raise InputError(f"{command[0]} failed")


if __name__ == "__main__":
    app.run(main, flags_parser=program.parse)
