"""DataSet: the clicks to learn from, and what is measured on dev and test."""

import hashlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from keras_lstm_dssm.baselines.tokenizers import alphanumeric
from keras_lstm_dssm.data import (
    ClickLog,
    Collection,
    judged_negatives,
    open_collection,
)
from keras_lstm_dssm.data.click_log import click_line
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import System, Task
from keras_lstm_dssm.files import replacing
from keras_lstm_dssm.tables.table_settings import Settings

DEV_MEASURES = {"rerank": "ndcg@10", "retrieve": "mrr@10"}
"""Mode -> the one figure that choices on dev, and the charts, go by."""

_DEV_DEPTH = 10  # all that MRR@10 looks at


class DataSet(NamedTuple):
    """One collection, seen as the table needs it.

    Attributes:
        titles: All titles of the corpus, distinct.
        log: The clicks of the training queries.
        dev: The task that choices are made on.
        dev_measure: The measure that they are made by.
        tests: Mode -> the task that is reported.
        judged: Query -> titles judged not to answer it; None where they are
            not trained on.
    """

    titles: list[str]
    log: ClickLog
    dev: Task
    dev_measure: str
    tests: dict[str, Task]
    judged: dict[str, list[str]] | None = None

    def dev_figure(self, system: System) -> float:
        """Measures a system on dev, from 0 to 1."""
        return self.dev.evaluate(self.dev.run(system))[self.dev_measure]

    @property
    def sizes(self) -> dict[str, int]:
        """What the data holds."""
        return {
            "titles": len(self.titles),
            "clicks": self.log.count(),
            "dev_queries": len(self.dev.queries),
            **{f"{m}_queries": len(t.queries) for m, t in self.tests.items()},
        }


def open_dataset(settings: Settings, folder: Path) -> DataSet:
    """Opens what the settings name.

    Judged titles are reranked where that can tell systems apart: where a
    query has titles of different grades. Choices are made on the reranking
    of dev when that holds for half of its queries or more, else on retrieval
    from the whole corpus. When titles are reranked, a query counts that has
    a title of grade 1 or more, as in the paper, whatever `min_relevant` is.

    Args:
        settings: `data`, `min_relevant`, `depth`, `pairs` and
            `judged_negatives` are used.
        folder: For a file of clicks, where the data set has none or some
            are left out.

    Raises:
        InputError: The data is wrong, or has no split to choose or to
            measure on.

    Example:
    >>> data = open_dataset(Settings("api"), Path("build/table"))
    >>> data.dev_measure, list(data.tests)
    ('mrr@10', ['retrieve'])
    """
    collection = open_collection(settings.data)
    missing = {"dev", "test"} - set(collection.splits)
    if missing:
        raise InputError(
            f"{collection.folder}: found no qrels/{missing.pop()}.tsv,"
            " expected the splits dev and test: choices are made on dev;"
            " lstm-dssm-split makes both from clicks"
        )
    least = settings.min_relevant
    if _rerankable(collection, "dev") >= 0.5:
        mode, dev = "rerank", Task.of(collection, "dev", "rerank")
    else:
        mode = "retrieve"
        dev = Task.of(collection, "dev", mode, least, _DEV_DEPTH)
    tests = {}
    if _rerankable(collection, "test"):
        tests["rerank"] = Task.of(collection, "test", "rerank")
    tests["retrieve"] = Task.of(
        collection, "test", "retrieve", least, settings.depth
    )
    log = collection.training_log(least, folder / "clicks.train.tsv")
    if settings.pairs is not None:
        log = _some_queries(log, settings.pairs, folder / "clicks.some.tsv")
    return DataSet(
        list(dict.fromkeys(collection.documents.values())),
        log,
        dev,
        DEV_MEASURES[mode],
        tests,
        judged_negatives(settings.data, least)
        if settings.judged_negatives
        else None,
    )


def with_queries(task: Task, change: Callable[[str], str]) -> Task:
    """Returns the task with each query's text changed."""
    changed = {key: change(text) for key, text in task.queries.items()}
    return task._replace(queries=changed)


def _some_queries(log: ClickLog, pairs: int, path: Path) -> ClickLog:
    """Keeps whole queries, by a hash, until they have so many clicks."""
    counts = Counter(pair.query for pair in log)
    kept: set[str] = set()
    clicks = 0
    for query in sorted(
        counts, key=lambda q: hashlib.sha256(q.encode()).digest()
    ):
        if clicks >= pairs:
            break
        kept.add(query)
        clicks += counts[query]
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        replacing(path) as partial,
        partial.open("w", encoding="utf-8") as file,
    ):
        file.writelines(click_line(pair) for pair in log if pair.query in kept)
    return ClickLog(path)


def _rerankable(collection: Collection, split: str) -> float:
    """The share of queries that have titles of different grades."""
    judged = collection.qrels(split).values()
    different = [len(set(grades.values())) > 1 for grades in judged]
    return sum(different) / max(len(different), 1)


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
