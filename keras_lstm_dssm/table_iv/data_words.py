"""What the words of a data set are like: why one system suits it."""

import numpy as np

from keras_lstm_dssm.baselines.tokenizers import alphanumeric
from keras_lstm_dssm.table_iv.dataset import DataSet


def describe_words(data: DataSet) -> dict[str, float]:
    """Counts words, runs of letters and digits, of the test queries' data.

    Returns:
        `query_words` and `title_words`, means over test queries and all
        titles; `overlap`, the share of a query's distinct words that are in
        a relevant title, mean over such pairs; `seen`, the share of the
        queries' words that are in a training query; `clicks_per_title`, mean
        over the titles that were clicked.
    """
    task = data.tests["retrieve"]
    overlap = [
        len(words & set(alphanumeric(task.documents[title]))) / len(words)
        for key, query in task.queries.items()
        if (words := set(alphanumeric(query)))
        for title, grade in task.qrels[key].items()
        if grade >= task.min_relevant
    ]
    queries = [alphanumeric(query) for query in task.queries.values()]
    learnt: set[str] = set()
    clicked: set[str] = set()
    for pair in data.log:
        learnt.update(alphanumeric(pair.query))
        clicked.add(pair.document)
    return {
        "query_words": _mean([len(words) for words in queries]),
        "title_words": _mean([len(alphanumeric(t)) for t in data.titles]),
        "overlap": _mean(overlap),
        "seen": _mean([word in learnt for words in queries for word in words]),
        "clicks_per_title": data.log.count() / max(len(clicked), 1),
    }


def _mean(values: list[int] | list[float] | list[bool]) -> float:
    return float(np.mean(values)) if values else 0.0
