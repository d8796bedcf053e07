"""Measures Doc2Vec and PLSA of Table IV with other settings, one seed.

    cd docs/results/claims
    python vary.py DATA homedepot.json toilet paint

DATA is a BEIR folder. The JSON file gets NDCG@1, @3 and @10 of the judged
titles of test by setting, and the words that Doc2Vec finds nearest to others.
"""

import json
import sys
from pathlib import Path

from keras_lstm_dssm.data import open_collection
from keras_lstm_dssm.evaluation import Task, mean
from keras_lstm_dssm.papers import Doc2VecSystem, PLSASystem

MEASURES = ("ndcg@1", "ndcg@3", "ndcg@10")


def vary(data: str, output: str, *words: str) -> None:
    """Trains each setting on the titles, and writes what was measured."""
    collection = open_collection(data)
    task = Task.from_collection(collection, "test", "rerank")
    titles = list(dict.fromkeys(collection.documents.values()))
    settings = {
        "doc2vec": {},
        **{f"window_{n}": {"window": n} for n in (2, 10)},
        "size_400": {"vector_size": 400},
        "epochs_100": {"epochs": 100},
    }
    systems = {n: Doc2VecSystem(**given) for n, given in settings.items()}
    systems |= {f"plsa_{n}": PLSASystem(topics=n) for n in (100, 200, 500)}
    results = {}
    for name, system in systems.items():
        _, measured = task.measure(system.fit(titles))
        results[name] = mean(measured, MEASURES)
        print(name, results[name], flush=True)
    vectors = systems["doc2vec"].model_.wv
    results["nearest"] = {w: vectors.most_similar(w)[:5] for w in words}
    Path(output).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    vary(*sys.argv[1:])
