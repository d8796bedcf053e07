"""Prints P@1 of a finished table by the rarest word of query and answer.

    cd docs/results/mv_lstm
    python rarest_shared_word.py DATA OUT bm25 mv_lstm_cosine

DATA is the folder of judged lists, OUT the output of `lstm-dssm-table` for it.
A word is a run of letters and digits. How rare it is says the number of
training texts, queries and documents, that have it. Queries are those of the
split test; P@1 is the mean over seeds, in percent.
"""

import csv
import sys
from collections import Counter
from pathlib import Path

import numpy as np

from keras_lstm_dssm.data import Triples, open_collection
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.text import split_in_batches

GROUPS = {
    "none": (-1, -1),
    "in no training text": (0, 0),
    "in 1 to 9": (1, 9),
    "in 10 to 99": (10, 99),
    "in 100 or more": (100, sys.maxsize),
}


def words_of(texts: list[str]) -> list[set[bytes]]:
    """Returns the distinct words of each text."""
    return [
        set(words)
        for batch in split_in_batches(texts, "alphanumeric")
        for words in batch.to_list()
    ]


def rarest_shared_words(folder: str) -> dict[str, int]:
    """Counts the training texts that have the rarest shared word.

    Returns:
        Id of each test query -> that count, or -1 if it shares no word with
        a right answer.
    """
    collection = open_collection(folder)
    train = words_of(Triples.from_collection(collection).texts)
    frequency = Counter(word for words in train for word in words)
    documents = collection.documents
    rarest = {}
    for query, judged in collection.qrels("test").items():
        relevant = [documents[name] for name in judged if judged[name] > 0]
        words, *answers = words_of([collection.queries[query], *relevant])
        shared = words.intersection(set().union(*answers))
        rarest[query] = min((frequency[word] for word in shared), default=-1)
    return rarest


def precision(output: str, system: str) -> dict[str, float]:
    """Returns the id of each test query -> P@1, the mean over seeds."""
    of_seeds = []
    for path in Path(output, "systems", system).glob("seed_*/test.*.csv"):
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
        of_seeds.append({row["query"]: float(row["p@1"]) for row in rows})
    if not of_seeds:
        raise InputError(
            f"{output}: found no results of {system!r} on test, expected the"
            " output of lstm-dssm-table with this system"
        )
    return {
        query: float(np.mean([seed[query] for seed in of_seeds]))
        for query in of_seeds[0]
    }


def main(folder: str, output: str, *systems: str) -> None:
    """Prints the table."""
    rarest = rarest_shared_words(folder)
    values = {name: precision(output, name) for name in systems}
    print("rarest shared word | lists |", " | ".join(systems))
    for group, (least, most) in GROUPS.items():
        ids = [q for q, count in rarest.items() if least <= count <= most]
        if ids:
            means = (np.mean([p[q] for q in ids]) for p in values.values())
            cells = " | ".join(f"{100 * mean:.0f}" for mean in means)
            print(f"{group} | {len(ids)} | {cells}")


if __name__ == "__main__":
    main(*sys.argv[1:])
