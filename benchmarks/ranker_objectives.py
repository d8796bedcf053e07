r"""Compares the objectives of a ranker's trees by cross-validation.

    python -m keras_lstm_dssm.benchmarks.ranker_objectives \
        --data=FOLDER --encoder=TEACH

Only the training split is read: the trees of each fold are measured on
queries that they have not learnt from. Neither dev nor test chooses.
"""

import sys
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from keras_lstm_dssm.command_line import Program
from keras_lstm_dssm.data import open_collection
from keras_lstm_dssm.evaluation.measures import evaluate_queries, mean
from keras_lstm_dssm.ranker import OverlapFeatures, PairFeatures
from keras_lstm_dssm.ranker.graded_lists import GradedLists, JudgedPairs
from keras_lstm_dssm.ranker.ranker import open_sources
from keras_lstm_dssm.ranker.train_ranker import train_trees
from keras_lstm_dssm.settings.recipes import RankerRecipe

program = Program(__doc__, required=["data"])
FLAGS = program.flags
program.string("data", None, "BEIR folder with grades.")
program.string("encoder", None, "As for lstm-dssm-train --preset=ranker.")
program.integer("folds", 5, "Number of folds.", 2)
program.integer("trees", 200, "Number of trees.", 1)
program.integer("leaves", 15, "Number of leaves of a tree.", 2)
program.integer("seed", 0, "Seed of the folds.", 0)

_BAGGING = {"bagging_fraction": 0.5, "bagging_freq": 1, "feature_fraction": 0.5}
_OPTIONS = {
    "lambdarank": RankerRecipe("lambdarank"),
    "rank_xendcg": RankerRecipe("rank_xendcg"),
    "regression": RankerRecipe("regression"),
    "regression, bagged": RankerRecipe("regression", parameters=_BAGGING),
}
_MEASURES = ("ndcg@1", "ndcg@3", "ndcg@10")


def cross_validate(
    rows: JudgedPairs,
    options: RankerRecipe,
    leaves: int,
    folds: int,
    seed: int = 0,
) -> np.ndarray:
    """Scores rows by trees that have not learnt from their lists."""
    fold = np.random.default_rng(seed).integers(folds, size=len(rows.sizes))
    fold_of_row = np.repeat(fold, rows.sizes)
    scores = np.zeros(len(rows.grades))
    for number in range(folds):
        inside = fold_of_row != number
        trees = train_trees(
            JudgedPairs(
                rows.features[inside],
                rows.grades[inside],
                np.array(rows.sizes)[fold != number].tolist(),
            ),
            leaves,
            options,
            seed,
        )
        scores[~inside] = trees(rows.features[~inside])
    return scores


def main(_: list[str]) -> dict[str, Any]:
    """Prints and returns the measures of each objective, and of bagging."""
    lists = GradedLists.from_collection(open_collection(FLAGS.data))
    sources = open_sources([], FLAGS.encoder)
    features = PairFeatures(OverlapFeatures.from_titles(lists.titles), sources)
    rows = JudgedPairs.from_lists(lists.lists, partial(features, progress=True))
    scores = {
        f"{name} alone": rows.features[:, column]
        for column, name in enumerate(features.names)
        if name in ("bm25", *sources)
    }
    for name, options in _OPTIONS.items():
        options = replace(options, rounds_without_dev=FLAGS.trees)
        scores[name] = cross_validate(
            rows, options, FLAGS.leaves, FLAGS.folds, FLAGS.seed
        )
    results = {name: _measure(rows, of) for name, of in scores.items()}
    print(f"{lists.describe()}, NDCG@1 / @3 / @10")
    for name, values in results.items():
        shown = " / ".join(f"{100 * values[m]:.2f}" for m in _MEASURES)
        print(f"{shown}  {name}")
    return results


def _measure(rows: JudgedPairs, scores: np.ndarray) -> dict[str, float]:
    """Returns the NDCG of scores, averaged over the lists."""
    run, qrels, start = {}, {}, 0
    for number, size in enumerate(rows.sizes):
        part = slice(start, start + size)
        ids = [str(i) for i in range(size)]
        key = str(number)
        run[key] = dict(zip(ids, scores[part].tolist(), strict=True))
        qrels[key] = dict(zip(ids, rows.grades[part].tolist(), strict=True))
        start += size
    return mean(evaluate_queries(run, qrels, 1, _MEASURES))


run = program.main(main)

if __name__ == "__main__":
    sys.exit(run())
