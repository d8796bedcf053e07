"""The data of a table: what is trained on, and the tasks on dev and test.

There are clicks or judged lists for queries and titles, and folders of
documents.
"""

import hashlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from keras_lstm_dssm.data.click_log import ClickLog, write_pairs
from keras_lstm_dssm.data.collection import Collection
from keras_lstm_dssm.data.documents import DocumentFolder
from keras_lstm_dssm.data.sources import (
    DataSource,
    open_collection,
    open_documents,
)
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.bm25 import alphanumeric
from keras_lstm_dssm.evaluation.measures import mean
from keras_lstm_dssm.evaluation.task import (
    CLUSTER,
    MAIN_MEASURES,
    MODES,
    RETRIEVE,
    Task,
    document_tasks,
    document_text,
)
from keras_lstm_dssm.papers.rows import Row
from keras_lstm_dssm.settings.papers import TableSettings

CHART_MEASURES = {
    "rerank": ("ndcg@10",),
    "retrieve": ("mrr@10",),
    "lists": ("p@1", "mrr"),
    CLUSTER: ("ari", "ami"),
}
"""Mode -> the measures in charts and overviews, first of `MAIN_MEASURES`."""


@dataclass(frozen=True)
class BaseTableData(ABC):
    """Base of `TableData` and `DocumentTableData`.

    Attributes:
        titles: The texts that baselines are trained on.
        dev: The task on the dev split, for choices.
        dev_measure: Name of the measure to maximise on dev.
        tests: Mode -> the task on the test split.
    """

    titles: list[str]
    dev: Any
    dev_measure: str
    tests: Mapping[str, Any]

    @property
    @abstractmethod
    def sizes(self) -> dict[str, int]:
        """The numbers of documents, queries and others, by name."""

    @property
    @abstractmethod
    def words(self) -> dict[str, float]:
        """Counts of words, for the report."""

    def measure_on_dev(self, system: Any) -> float:
        """Measures a system on dev, from 0 to 1."""
        _, by_query = self.dev.measure(system)
        return mean(by_query, [self.dev_measure])[self.dev_measure]

    def tests_of(self, row: Row) -> dict[str, Any]:
        """Returns the tasks on test that the system of a row is measured on.

        These are all tasks, or all but clustering if it has no vectors.
        """
        return {
            mode: task
            for mode, task in self.tests.items()
            if row.vectors or mode != CLUSTER
        }


_DEV_MEASURES = {RETRIEVE: "map", CLUSTER: "ari"}


@dataclass(frozen=True)
class DocumentTableData(BaseTableData):
    """Holds the documents to train on, and the tasks on dev and test.

    Attributes:
        titles: The documents of the split train, with one sentence on each
            line.
        dev: See `BaseTableData`.
        dev_measure: See `BaseTableData`.
        tests: `"retrieve"` -> `Task`, `"cluster"` -> `ClusterTask`, or one of
            them.
        folder: The folder.
    """

    folder: DocumentFolder

    @property
    def sizes(self) -> dict[str, int]:
        """The numbers of documents, queries and classes, by name."""
        sizes = {
            "documents": self.folder.count(),
            "train_documents": len(self.titles),
        }
        if RETRIEVE in self.tests:
            sizes["dev_queries"] = len(self.dev.queries)
            sizes["retrieve_queries"] = len(self.tests[RETRIEVE].queries)
        if CLUSTER in self.tests:
            counts = self.tests[CLUSTER].sizes
            sizes |= {f"cluster_{name}": n for name, n in counts.items()}
        return sizes

    @property
    def words(self) -> dict[str, float]:
        """The mean numbers of sentences and words in a training document."""
        return {
            "sentences": float(
                np.mean([t.count("\n") + 1 for t in self.titles])
            ),
            "words": float(
                np.mean([len(alphanumeric(t)) for t in self.titles])
            ),
        }


def open_document_data(settings: TableSettings) -> DocumentTableData:
    """Opens the folder of documents that the settings name.

    Systems are trained on the split train. Choices on dev are made by the
    mean average precision of the queries of dev, which counts all of a
    query's documents, or by the adjusted Rand index of the clusters of its
    documents where there are no queries.

    Args:
        settings: `data` and `min_relevant` are used.

    Raises:
        InputError: The folder is malformed, a split has no documents, or
            test has queries and dev has none.

    Example:
    >>> settings = TableSettings("api_documents", documents=True)
    >>> list(open_document_data(settings).tests)
    ['retrieve', 'cluster']
    """
    folder = open_documents(settings.data)
    titles = [document_text(d.sentences) for d in folder.of("train")]
    if not titles:
        raise InputError(
            f"{folder.folder}: found no document of split 'train', expected"
            " documents to train on: give some the split train"
        )
    tests = document_tasks(folder, "test", settings.min_relevant)
    choices = document_tasks(folder, "dev", settings.min_relevant)
    mode = RETRIEVE if RETRIEVE in tests else CLUSTER
    if mode not in choices:
        raise InputError(
            f"{folder.folder}: found no qrels/dev.tsv, expected queries of dev"
            " as of test, for choices: judge some, or remove qrels/test.tsv"
        )
    return DocumentTableData(
        titles, choices[mode], _DEV_MEASURES[mode], tests, folder
    )


_DEV_DEPTH = 100
"""Documents that a system ranks on dev. MRR@10 needs ten of them; but those
that the parts of a mixture rank below can be among the first ten of their
sum."""


@dataclass(frozen=True)
class TableData(BaseTableData):
    """The clicks that systems are trained on, and the tasks.

    Attributes:
        titles: All distinct titles of the corpus.
        dev: See `BaseTableData`.
        dev_measure: See `BaseTableData`.
        tests: See `BaseTableData`.
        log: The clicks of the training queries.
        judged: Query -> titles judged not relevant, for negatives; `None`
            where they are not used.

    Example:
    >>> data = open_table_data(TableSettings("parts"), Path("table"))
    >>> data.sizes["clicks"], data.sizes["retrieve_queries"]
    (3, 2)
    """

    log: ClickLog
    judged: dict[str, list[str]] | None = None

    @property
    def sizes(self) -> dict[str, int]:
        """The numbers of titles, clicks and queries, by name."""
        return {
            "titles": len(self.titles),
            "clicks": self.log.count(),
            "dev_queries": len(self.dev.queries),
            **{f"{m}_queries": len(t.queries) for m, t in self.tests.items()},
        }

    @property
    def words(self) -> dict[str, float]:
        """The result of `describe_words`."""
        return describe_words(self)


def open_data(settings: TableSettings, folder: Path) -> BaseTableData:
    """Opens the clicks, judged lists or documents that the settings name.

    See `open_table_data` and `open_document_data`.

    Example:
    >>> len(open_data(TableSettings("parts"), Path("table")).titles)
    4
    >>> settings = TableSettings("manuals", documents=True)
    >>> len(open_data(settings, Path("table")).titles)
    3
    """
    if settings.documents:
        return open_document_data(settings)
    return open_table_data(settings, folder)


def open_table_data(settings: TableSettings, folder: Path) -> TableData:
    """Opens the collection that the settings name.

    With `settings.lists` there is one mode, `"lists"`: systems are measured
    on the judged documents of each query, in expectation over ties. Choices
    on dev are made by `settings.select`, by default P@1 where each dev query
    has one relevant document, and otherwise MAP.

    Otherwise the judged documents of the test queries are reranked if some
    query has documents of different grades. On dev, systems rerank if half of
    the queries or more have such documents, and otherwise retrieve from the
    whole corpus, unless `settings.dev_mode` says which. For reranking, as in
    Table IV of Palangi et al. 2016, a document of grade 1 is relevant,
    whatever `min_relevant` is.

    Args:
        settings: `data`, `lists`, `select`, `dev_mode`, `min_relevant`,
            `depth`, `pairs` and `judged_negatives` are used.
        folder: Folder for a file of clicks, where the collection has none
            or only a part is used.

    Raises:
        InputError: The collection is malformed, or has no dev or test split.

    Example:
    >>> data = open_table_data(TableSettings("api"), Path("build/table"))
    >>> data.dev_measure, list(data.tests)
    ('mrr@10', ['retrieve'])
    """
    collection = open_collection(settings.data)
    for split in ("dev", "test"):
        if split not in collection.splits:
            raise InputError(
                f"{collection.folder}: found no qrels/{split}.tsv, expected"
                " the splits dev, for choices, and test: make both from"
                " clicks by lstm-dssm-split"
            )
    min_relevant = settings.min_relevant

    def task(split: str, mode: str, depth: int) -> Task:
        least = 1 if mode == "rerank" else min_relevant
        return Task.from_collection(collection, split, mode, least, depth)

    if settings.lists:
        dev, test = (
            Task.from_collection(collection, split, "lists", min_relevant)
            for split in ("dev", "test")
        )
        tests = {"lists": test}
        measure = settings.select or _list_measure(dev)
    else:
        mode = settings.dev_mode
        if mode is None:
            ranked = _rerankable(collection, "dev") >= 0.5
            mode = "rerank" if ranked else "retrieve"
        dev = task("dev", mode, _DEV_DEPTH)
        tests = {
            name: task("test", name, settings.depth)
            for name in MODES
            if name == "retrieve" or _rerankable(collection, "test")
        }
        measure = MAIN_MEASURES[mode]
    log = collection.training_log(min_relevant, folder / "clicks.train.tsv")
    if settings.pairs is not None:
        log = _some_queries(log, settings.pairs, folder / "clicks.some.tsv")
    return TableData(
        list(dict.fromkeys(collection.documents.values())),
        dev,
        measure,
        tests,
        log,
        DataSource(settings.data).judged_negatives(min_relevant)
        if settings.judged_negatives
        else None,
    )


def change_queries(task: Task, change: Callable[[str], str]) -> Task:
    """Returns a task whose query texts are changed by a function."""
    changed = {key: change(text) for key, text in task.queries.items()}
    return task._replace(queries=changed)


def _some_queries(log: ClickLog, pairs: int, path: Path) -> ClickLog:
    """Writes the clicks of whole queries, in hash order, `pairs` or more."""
    counts = Counter(pair.query for pair in log)
    selected: set[str] = set()
    clicks = 0
    by_hash = sorted(counts, key=lambda q: hashlib.sha256(q.encode()).digest())
    for query in by_hash:
        if clicks >= pairs:
            break
        selected.add(query)
        clicks += counts[query]
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_pairs((pair for pair in log if pair.query in selected), path)


def _list_measure(dev: Task) -> str:
    """Returns the default measure for choices on judged lists."""
    one_each = all(
        sum(grade >= dev.min_relevant for grade in judged.values()) == 1
        for judged in dev.qrels.values()
    )
    return MAIN_MEASURES["lists"] if one_each else "map"


def _rerankable(collection: Collection, split: str) -> float:
    """Returns the share of queries with documents of different grades."""
    judged = collection.graded_qrels(split).values()
    different = [len(set(grades.values())) > 1 for grades in judged]
    return sum(different) / max(len(different), 1)


def describe_words(data: TableData) -> dict[str, float]:
    """Counts the words (runs of letters and digits) of queries and titles.

    Returns:
        `query_words` and `title_words`, the mean numbers in a test query and
        in a title; `overlap`, the share of a test query's distinct words that
        are in a relevant title, the mean over such pairs; `seen`, the share
        of the test queries' words that occur in a training query;
        `clicks_per_title`, the mean over the clicked titles.
    """
    *_, task = data.tests.values()  # of all queries with a relevant title
    overlap = [
        len(words & set(alphanumeric(task.documents[title]))) / len(words)
        for key, query in task.queries.items()
        if (words := set(alphanumeric(query)))
        for title, grade in task.qrels[key].items()
        if grade >= task.min_relevant
    ]
    queries = [alphanumeric(query) for query in task.queries.values()]
    trained_words: set[str] = set()
    clicked: set[str] = set()
    for pair in data.log:
        trained_words.update(alphanumeric(pair.query))
        clicked.add(pair.document)
    return {
        "query_words": _mean([len(words) for words in queries]),
        "title_words": _mean([len(alphanumeric(t)) for t in data.titles]),
        "overlap": _mean(overlap),
        "seen": _mean([w in trained_words for words in queries for w in words]),
        "clicks_per_title": data.log.count() / max(len(clicked), 1),
    }


def _mean(values: list[int] | list[float] | list[bool]) -> float:
    return float(np.mean(values)) if values else 0.0
