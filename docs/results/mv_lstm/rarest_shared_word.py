"""Prints P@1 for groups of queries, by how rare a shared word is.

    cd docs/results/mv_lstm
    python rarest_shared_word.py DATA OUT bm25 mv_lstm_cosine

For each test query, the rarest word that the query and its relevant documents
share is found: that in the fewest training texts (queries and documents).
Queries are grouped by this number of texts, and the mean P@1 of each group is
printed in percent, averaged over seeds. Words are runs of letters and digits.

DATA is a folder of judged lists, OUT the output of
`lstm-dssm-table --paper=mv_lstm --data=DATA` with three seeds or fewer.
"""

import sys
from collections import Counter
from pathlib import Path

import numpy as np

from keras_lstm_dssm.data import Triples, open_collection
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.papers import PAPERS, choose_rows, read_results
from keras_lstm_dssm.text.vocabulary import split_in_batches

GROUPS = {
    "none": (-1, -1),
    "in no training text": (0, 0),
    "in 1 to 9": (1, 9),
    "in 10 to 99": (10, 99),
    "in 100 or more": (100, sys.maxsize),
}
SEEDS = 3


def distinct_words(texts: list[str]) -> list[set[bytes]]:
    """Splits texts into words; returns the set of words of each text."""
    return [
        set(words)
        for batch in split_in_batches(texts, "alphanumeric")
        for words in batch.to_list()
    ]


def rarest_shared_words(folder: str) -> dict[str, int]:
    """Finds how rare the rarest word is that query and answer share.

    Returns id of each test query -> the number of training texts with that
    word; -1 for a query that shares none with its relevant documents.
    """
    collection = open_collection(folder)
    train = distinct_words(Triples.from_collection(collection).texts)
    frequency = Counter(word for words in train for word in words)
    queries, documents = collection.queries, collection.documents
    query_words = dict(
        zip(queries, distinct_words(list(queries.values())), strict=True)
    )
    document_words = dict(
        zip(documents, distinct_words(list(documents.values())), strict=True)
    )
    rarest = {}
    for query, grades in collection.qrels("test").items():
        relevant = [document_words[id_] for id_ in grades if grades[id_] > 0]
        shared = query_words[query].intersection(set().union(*relevant))
        rarest[query] = min((frequency[word] for word in shared), default=-1)
    return rarest


def main(folder: str, output: str, *systems: str) -> None:
    """Prints a table of P@1, a line for each group of queries.

    A line has the name of the group, how many queries it has, and their mean
    P@1 in percent for each system.
    """
    rows = choose_rows(PAPERS["mv_lstm"].rows, systems)
    results = read_results(Path(output), rows, SEEDS)
    for name in rows:
        if name not in results:
            raise InputError(
                f"{output}: found no results of {name!r} on test, expected the"
                " output of lstm-dssm-table with this system"
            )
    p_at_1 = [results[name].queries("lists", "p@1") for name in systems]
    rarest = rarest_shared_words(folder)
    print("rarest shared word | lists |", " | ".join(systems))
    for group, (least, most) in GROUPS.items():
        ids = [q for q, count in rarest.items() if least <= count <= most]
        if ids:
            means = (np.mean([values[q] for q in ids]) for values in p_at_1)
            cells = " | ".join(f"{100 * mean:.0f}" for mean in means)
            print(f"{group} | {len(ids)} | {cells}")


if __name__ == "__main__":
    main(*sys.argv[1:])
