r"""Compares ways to learn from new clicks: continue, train anew, or do nothing.

    python -m keras_lstm_dssm.benchmarks.continued_training \
        --data=api --preset=best --epochs=6 --new_epochs=2

The clicks are put in the order of their titles, as if the packages (with
`--data=api`) had appeared one after the other, and cut: the last fifth is new.
A tenth of the queries of each part is held out, and their titles are searched
for among all titles. A run on the old clicks is then compared with runs that
continue it on the new ones, with and without replay, and with one that is
trained anew on all clicks.
"""

import json
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import keras_lstm_dssm as dssm
from keras_lstm_dssm.command_line import Program
from keras_lstm_dssm.data import Pair, open_log, write_pairs
from keras_lstm_dssm.evaluation import Task, system_of

program = Program(__doc__)
FLAGS = program.flags
program.string("data", "api", "The clicks, as for lstm-dssm-train.")
program.string("preset", "best", "The recipe of two towers.")
program.integer("epochs", 6, "Epochs of a training on random weights.", 1)
program.integer("new_epochs", 2, "Epochs of a training that is continued.", 1)
program.list("replay", ["0.2", "1"], "Shares of old clicks to compare.")
program.integer("seed", 0, "Seed of all trainings.", 0)

_NEW = 0.2
_HELD_OUT = 10  # one query of so many
_DEPTH = 100
_MEASURE = "mrr@10"


def cut(pairs: Iterable[Pair]) -> dict[str, list[Pair]]:
    """Cuts clicks into old and new ones, and each of them into train and test.

    The parts are `old`, `old_test`, `new` and `new_test`; no query of a test
    part is in another part.
    """
    ordered = sorted(set(pairs), key=lambda pair: (pair.document, pair.query))
    first_new = round(len(ordered) * (1 - _NEW))
    parts: dict[str, list[Pair]] = {
        name: [] for name in ("old", "old_test", "new", "new_test")
    }
    queries = {
        name: dict.fromkeys(pair.query for pair in some)
        for name, some in (
            ("old", ordered[:first_new]),
            ("new", ordered[first_new:]),
        )
    }
    tested = {
        name: set(list(of_part)[::_HELD_OUT])
        for name, of_part in queries.items()
    }
    for number, pair in enumerate(ordered):
        name, other = ("old", "new") if number < first_new else ("new", "old")
        if pair.query in tested[name] - set(queries[other]):
            parts[f"{name}_test"].append(pair)
        else:
            parts[name].append(pair)
    return parts


def task(test: Sequence[Pair], titles: Sequence[str]) -> Task:
    """Makes the task to find the titles of held-out clicks among all."""
    qrels: dict[str, dict[str, int]] = {}
    for query, title in test:
        qrels.setdefault(query, {})[title] = 1
    return Task(
        {query: query for query in qrels},
        {title: title for title in titles},
        qrels,
        depth=_DEPTH,
    )


def main(_: list[str]) -> dict[str, Any]:
    """Trains and measures; returns the figures by way."""
    parts = cut(open_log(FLAGS.data))
    print({name: len(some) for name, some in parts.items()})
    known = {
        name: list(
            dict.fromkeys(
                pair.document
                for part in (name, f"{name}_test")
                for pair in parts[part]
            )
        )
        for name in ("old", "new")
    }
    titles = list(dict.fromkeys([*known["old"], *known["new"]]))
    tasks = {
        name: task(parts[f"{name}_test"], titles) for name in ("new", "old")
    }
    figures: dict[str, dict[str, float]] = {}

    def measure(way: str, *arguments: Any, **options: Any) -> Any:
        start = time.process_time()
        model = dssm.train(*arguments, seed=FLAGS.seed, verbose=0, **options)
        figures[way] = {
            "cpu_minutes": (time.process_time() - start) / 60,
            **{
                name: each.evaluate(each.run(system_of(model)))[_MEASURE]
                for name, each in tasks.items()
            },
        }
        print(way, json.dumps(figures[way]), flush=True)
        return model

    recipe = dssm.PRESETS[FLAGS.preset].replace(epochs=FLAGS.epochs)
    short = recipe.replace(epochs=FLAGS.new_epochs)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        new, old, both = (
            folder / f"{part}.tsv" for part in ("new", "old", "all")
        )
        write_pairs(parts["new"], new)
        write_pairs(parts["old"], old)
        write_pairs([*parts["old"], *parts["new"]], both)
        parent = measure("not at all", str(old), recipe, titles=known["old"])
        options = {"init": parent, "titles": known["new"]}
        measure("continued", str(new), short, **options)
        for share in FLAGS.replay:
            old_clicks = str(old), float(share)
            measure(
                f"continued, replay {share}",
                str(new),
                short,
                replay=old_clicks,
                **options,
            )
        measure("anew on all", str(both), recipe, titles=titles)
    return figures


run = program.main(main)

if __name__ == "__main__":
    sys.exit(run())
