"""Measures all weights of hybrids on dev of several data sets.

    python hybrid_defaults.py defaults.json RUN:DATA:TEACH:MIN_RELEVANT ...

The JSON file gets, by data set, MRR@10 of the dev queries with each weighting:
"towers,words" in twentieths, the rest is BM25 of stems with the k1 and b of
`HybridSettings`. What is printed first has the largest mean.
"""

import json
import sys
from pathlib import Path

import numpy as np

import keras_lstm_dssm as dssm
from keras_lstm_dssm.data import open_collection
from keras_lstm_dssm.data.teacher_folder import TeacherVectors
from keras_lstm_dssm.evaluate.hybrid import BM25, bm25_part
from keras_lstm_dssm.evaluation import Task, mean
from keras_lstm_dssm.evaluation.mixture import _CachedScores
from keras_lstm_dssm.settings.hybrid import HybridSettings
from keras_lstm_dssm.training.hybrid_parts import HybridParts

STEPS, MEASURE = 20, "mrr@10"


def weightings(run: str, data: str, teacher: str, least: str) -> dict:
    """Returns MRR@10 on the dev queries of a data set, by weights."""
    parts = HybridParts.of(dssm.load_run(run), TeacherVectors.open(teacher))
    systems = {**parts.systems()}
    systems[BM25] = bm25_part(HybridSettings(bm25_words="stems"))
    dev = Task.from_collection(
        open_collection(data), "dev", "retrieve", int(least)
    )
    scored = _CachedScores(systems, dev, MEASURE)
    found = {}
    for towers in range(STEPS + 1):
        for words in range(STEPS + 1 - towers):
            counts = towers, words, STEPS - towers - words
            scored.weights = [count / STEPS for count in counts]
            _, by_query = dev.measure(scored)
            value = mean(by_query, [MEASURE])[MEASURE]
            found[f"{towers},{words}"] = round(value, 4)
    return found


def main(output: str, *sets: str) -> None:
    """Writes MRR@10 of all weights, and prints the ten of the largest mean."""
    results = {}
    for each in sets:
        run, data, teacher, least = each.split(":")
        results[Path(data).name] = weightings(run, data, teacher, least)
    Path(output).write_text(json.dumps(results, indent=1) + "\n")
    means = {
        key: np.mean([of_set[key] for of_set in results.values()])
        for key in next(iter(results.values()))
    }
    for key in sorted(means, key=lambda key: -means[key])[:10]:
        print(key, f"{100 * means[key]:.2f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
