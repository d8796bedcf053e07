"""The data of a table: training examples, and the tasks on dev and test."""

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from keras_lstm_dssm.data.click_log import ClickLog, write_pairs
from keras_lstm_dssm.data.collection import SPLITS, Collection
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
from keras_lstm_dssm.settings.programs import TableSettings


@dataclass(frozen=True)
class TableData:
    """The training examples of a table, and its tasks on dev and test."""

    settings: TableSettings
    folder: Path  # the folder of the table's results
    texts: list[str]  # titles or documents that baselines are trained on
    examples: Any  # for `dssm.train`: clicks, judged lists or documents
    training: Mapping[str, Any]  # further arguments of `dssm.train`
    dev: Any  # the task on the dev split, to choose hyperparameters by
    dev_measure: str  # the measure to maximise on dev
    tests: Mapping[str, Any]  # the tasks on the test split, by mode
    sizes: dict[str, int]  # sizes by name, such as "dev_queries"
    words: Callable[[], dict[str, float]]  # counts words for the report

    def measure_on_dev(self, system: Any) -> float:
        """Returns the dev measure of a system, from 0 to 1."""
        _, by_query = self.dev.measure(system)
        return mean(by_query, [self.dev_measure])[self.dev_measure]


def open_data(settings: TableSettings, folder: Path) -> TableData:
    """Opens the data of `settings`: clicks, judged lists or documents."""
    if settings.documents:
        return _open_documents(settings, folder)
    return _open_collection(settings, folder)


_DEV_MEASURES = {RETRIEVE: "map", CLUSTER: "ari"}


def _open_documents(settings: TableSettings, table: Path) -> TableData:
    """Opens a folder of documents; systems are trained on the split `train`."""
    folder = open_documents(settings.data)
    texts = [document_text(d.sentences) for d in folder.of("train")]
    if not texts:
        raise InputError(
            f"{folder.folder}: found no document of split 'train', expected"
            " documents to train on: assign documents to the split 'train'"
        )
    min_grade = settings.min_relevant
    tests: dict[str, Any] = document_tasks(
        folder, "test", min_grade,
        clustered=SPLITS if settings.clusters_of == "all" else (),
    )  # fmt: skip
    choices: dict[str, Any] = document_tasks(folder, "dev", min_grade)
    mode = RETRIEVE if RETRIEVE in tests else CLUSTER
    if mode not in choices:
        missing, kind, also = "qrels/dev.tsv", "judgements", "remove"
        if mode == CLUSTER:
            missing, kind, also = "two classes in dev", "classes", "add"
        raise InputError(
            f"{folder.folder}: found no {missing}, expected {kind} to choose"
            f" settings by: add {kind} of the split dev, or {also}"
            " qrels/test.tsv"
        )
    dev = choices[mode]
    sizes = {"documents": folder.count(), "train_documents": len(texts)}
    if RETRIEVE in tests:
        sizes["dev_queries"] = len(dev.queries)
        sizes["retrieve_queries"] = len(tests[RETRIEVE].queries)
    if CLUSTER in tests:
        counts = tests[CLUSTER].sizes
        sizes |= {f"cluster_{name}": n for name, n in counts.items()}

    def words() -> dict[str, float]:
        return {
            "sentences": _mean([text.count("\n") + 1 for text in texts]),
            "words": _mean([len(alphanumeric(text)) for text in texts]),
        }

    return TableData(
        settings, table, texts, folder, {}, dev, _DEV_MEASURES[mode], tests,
        sizes, words,
    )  # fmt: skip


# Number of documents that a system ranks on dev. MRR@10 reads 10 documents. A
# mixture needs more documents of each part, because a document below place 10
# in each part can be in the mixture's first 10.
_DEV_DEPTH = 100


def _open_collection(settings: TableSettings, folder: Path) -> TableData:
    """Opens a collection of queries and titles."""
    collection = open_collection(settings.data)
    for split in ("dev", "test"):
        if split not in collection.splits:
            raise InputError(
                f"{collection.folder}: found no qrels/{split}.tsv, expected"
                " the splits dev (to choose settings by) and test: make dev and"
                " test from clicks by lstm-dssm-prepare"
            )
    min_relevant = settings.min_relevant

    def task(split: str, mode: str, depth: int) -> Task:
        # As in Palangi et al. 2016, documents of grade 1 are relevant in
        # reranking, even if `min_relevant` is higher.
        min_grade = 1 if mode == "rerank" else min_relevant
        return Task.from_collection(collection, split, mode, min_grade, depth)

    if settings.lists:
        dev = task("dev", "lists", _DEV_DEPTH)
        tests = {"lists": task("test", "lists", settings.depth)}
        measure = settings.select or _list_measure(dev)
    else:
        mode = settings.dev_mode
        if mode is None:
            # Reranking needs queries whose documents differ in their grades.
            can_rerank = _rerankable(collection, "dev") >= 0.5
            mode = "rerank" if can_rerank else "retrieve"
        dev = task("dev", mode, _DEV_DEPTH)
        tests = {
            name: task("test", name, settings.depth)
            for name in MODES
            if name == "retrieve" or _rerankable(collection, "test")
        }
        measure = MAIN_MEASURES[mode]
    log = collection.training_log(min_relevant, folder / "clicks.train.tsv")
    if settings.pairs is not None:
        log = _sample_queries(log, settings.pairs, folder / "clicks.some.tsv")
    texts = list(dict.fromkeys(collection.documents.values()))
    examples: Any = log
    training: dict[str, Any] = {"titles": texts}
    if settings.lists:
        examples, training = settings.data, {"min_relevant": min_relevant}
    elif settings.judged_negatives:
        training["judged"] = DataSource(settings.data).judged_negatives(
            min_relevant
        )
    sizes = {
        "titles": len(texts),
        "clicks": log.count(),
        "dev_queries": len(dev.queries),
        **{f"{m}_queries": len(t.queries) for m, t in tests.items()},
    }
    # The last task is "lists" or "retrieve". The task "retrieve" has all test
    # queries with a relevant title.
    *_, last_task = tests.values()
    return TableData(
        settings, folder, texts, examples, training, dev, measure, tests, sizes,
        partial(describe_words, log, texts, last_task),
    )  # fmt: skip


def change_queries(task: Task, change: Callable[[str], str]) -> Task:
    """Returns a task whose query texts are changed by a function."""
    changed = {query: change(text) for query, text in task.queries.items()}
    return task._replace(queries=changed)


def _sample_queries(log: ClickLog, pairs: int, path: Path) -> ClickLog:
    """Writes clicks of queries, chosen by hash until `pairs` is reached."""
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
    """Returns P@1 if each query has one relevant document, otherwise MAP."""
    has_single_answers = all(
        sum(grade >= dev.min_relevant for grade in judged.values()) == 1
        for judged in dev.qrels.values()
    )
    return MAIN_MEASURES["lists"] if has_single_answers else "map"


def _rerankable(collection: Collection, split: str) -> float:
    """Returns the share of queries whose documents differ in their grades."""
    judged = collection.graded_qrels(split).values()
    different = [len(set(grades.values())) > 1 for grades in judged]
    return sum(different) / max(len(different), 1)


def describe_words(
    log: ClickLog, titles: list[str], task: Task
) -> dict[str, float]:
    """Returns statistics of words and clicks for the report: name -> mean."""
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
    for pair in log:
        trained_words.update(alphanumeric(pair.query))
        clicked.add(pair.document)
    return {
        "query_words": _mean([len(words) for words in queries]),
        "title_words": _mean([len(alphanumeric(t)) for t in titles]),
        # The share of a query's distinct words that are in a relevant title.
        "overlap": _mean(overlap),
        # The share of the queries' words that occur in a training query.
        "seen": _mean([w in trained_words for words in queries for w in words]),
        "clicks_per_title": log.count() / max(len(clicked), 1),
    }


def _mean(values: list[int] | list[float] | list[bool]) -> float:
    return float(np.mean(values)) if values else 0.0
