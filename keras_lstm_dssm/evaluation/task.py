"""Tasks: queries, documents and relevance judgements to measure systems on.

The tasks are reranking, whole-corpus retrieval, judged lists, and retrieval
and clustering of documents of many sentences.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.clustering import (
    K_MEANS_SEEDS,
    ClusterTask,
    encoder_of,
)
from keras_lstm_dssm.evaluation.measures import (
    LARGEST_GRADE,
    MEASURES,
    QueryMeasures,
    click_grades,
    evaluate,
    evaluate_queries,
    expected_measures,
    mean,
    random_order,
    tie_groups,
    with_relevant,
)
from keras_lstm_dssm.evaluation.runs import (
    ListScores,
    Qrels,
    Run,
    System,
    rank_lists,
    write_run,
)
from keras_lstm_dssm.settings.choices import LIST_MEASURES, MODES, RANDOM_ORDER

if TYPE_CHECKING:  # the data package imports TensorFlow
    from keras_lstm_dssm.data.collection import Collection


class Task(NamedTuple):
    """Queries, and documents to rank for each of them.

    Attributes:
        queries: Query id -> text.
        documents: Document id -> title, the whole corpus.
        qrels: Query id -> document id -> grade.
        min_relevant: Grade from which a document is relevant.
        depth: Number of documents to retrieve from the corpus for each query;
            `None` to rerank the judged documents of each query.

    Example:
    >>> task = Task.from_collection(dssm.data.open_collection("parts"), "test")
    >>> _, measured = task.measure(dssm.evaluation.BM25System())
    >>> mean(measured, ["map"])
    {'map': 1.0}
    """

    queries: dict[str, str]
    documents: Mapping[str, str]
    qrels: Qrels
    min_relevant: int = 1
    depth: int | None = None

    @classmethod
    def from_collection(
        cls,
        collection: Collection,
        split: str = "test",
        mode: str = "rerank",
        min_relevant: int = 1,
        depth: int = 1000,
    ) -> Task:
        """Selects the queries of a split that can distinguish systems.

        Queries without a relevant document are left out; in rerank mode, also
        queries with one judged document, which any order ranks perfectly.

        Args:
            collection: The collection. If a grade in it is above
                `LARGEST_GRADE`, its grades are taken as numbers of clicks;
                see `graded_qrels`.
            split: Name of one of its splits.
            mode: `"rerank"` orders the judged documents of each query;
                `"retrieve"` ranks the whole corpus.
            min_relevant: Grade from which a document is relevant.
            depth: Number of documents to retrieve in retrieve mode.

        Raises:
            InputError: The split or the mode is unknown, `depth` or
                `min_relevant` is below 1, or no query is left.

        Example:
        >>> task = Task.from_collection(collection, "test", "retrieve")
        """
        if mode not in MODES:
            raise InputError(
                f"unknown mode {mode!r}: choose one of {', '.join(MODES)}"
            )
        if depth < 1:
            raise InputError(f"depth is {depth}: expected 1 or more")
        qrels = with_relevant(graded_qrels(collection, split), min_relevant)
        if mode == "rerank":
            qrels = {
                q: grades for q, grades in qrels.items() if len(grades) > 1
            }
        if not qrels:
            raise InputError(
                f"split {split!r} has no query to {mode}: it needs a document"
                f" of grade {min_relevant} or more"
                + " and a second judged one" * (mode == "rerank")
                + "; try another mode or min_relevant"
            )
        queries = {query_id: collection.queries[query_id] for query_id in qrels}
        limit = depth if mode == "retrieve" else None
        return cls(queries, collection.documents, qrels, min_relevant, limit)

    @property
    def measures(self) -> tuple[str, ...]:
        """The names of the measures."""
        return MEASURES

    def run(self, system: System) -> Run:
        """Returns the run of a system."""
        if self.depth is None:
            candidates = {q: list(judged) for q, judged in self.qrels.items()}
            return system.rerank(self.queries, candidates, self.documents)
        return system.retrieve(self.queries, self.documents, self.depth)

    def evaluate(self, run: Run) -> dict[str, float]:
        """Measures a run; see `measures.evaluate`."""
        return evaluate(run, self.qrels, self.min_relevant, self.measures)

    def measure(self, system: Any) -> tuple[Run, QueryMeasures]:
        """Returns the run of a system, and the measures of each query."""
        run = self.run(system)
        return run, evaluate_queries(
            run, self.qrels, self.min_relevant, self.measures
        )

    def random(self) -> dict[str, float]:
        """Returns the exact expectation of each measure for random order."""
        return mean(self.random_queries(), self.measures)

    def random_queries(self) -> QueryMeasures:
        """Returns the expected measures of random order for each query."""
        sizes = {
            query_id: len(judged if self.depth is None else self.documents)
            for query_id, judged in self.qrels.items()
        }
        return random_order(
            self.qrels, sizes, self.min_relevant, self.depth, self.measures
        )


def holds_click_counts(collection: Collection) -> bool:
    """Returns whether the grades of a collection are numbers of clicks.

    They are if one of them, in any split, is above `LARGEST_GRADE`.
    """
    return any(
        grade > LARGEST_GRADE
        for split in collection.splits
        for judged in collection.qrels(split).values()
        for grade in judged.values()
    )


def graded_qrels(collection: Collection, split: str) -> Qrels:
    """Returns the grades of a split, computed from clicks if necessary.

    Numbers of clicks become grades 0 to 4 by `data.click_grades`, query by
    query.
    """
    qrels = collection.qrels(split)
    if not holds_click_counts(collection):
        return qrels

    return {query: click_grades(clicks) for query, clicks in qrels.items()}


def evaluate_systems(
    task: Task,
    systems: Mapping[str, System],
    run_files: Mapping[str, str | os.PathLike[str]] | None = None,
) -> dict[str, dict[str, float]]:
    """Measures systems and random order on one task.

    Args:
        task: The queries and documents to rank.
        systems: Name -> system.
        run_files: Name -> file for the system's TREC run; by default no
            run is written.

    Returns:
        Name -> measure -> value from 0 to 1, with `random` as the last.

    Example:
    >>> task = Task.from_collection(collection, "test", "retrieve")
    >>> results = evaluate_systems(task, {"bm25": BM25System()})
    >>> print(format_table(results))
    """
    measured = measure_systems(task, systems, run_files)
    return {
        name: mean(of_queries, task.measures)
        for name, of_queries in measured.items()
    }


def measure_systems(
    task: Task | ClusterTask,
    systems: Mapping[str, System],
    run_files: Mapping[str, str | os.PathLike[str]] | None = None,
) -> dict[str, QueryMeasures]:
    """Measures systems and random order on each query of a task.

    Args:
        task: The task.
        systems: Name -> system.
        run_files: Name -> file for the system's TREC run; by default no
            run is written.

    Returns:
        Name -> query id (for clustering, seed) -> measure -> value, with
        `random` as the last.
    """
    measured = {}
    for name, system in systems.items():
        run, measured[name] = task.measure(system)
        if run is not None and run_files and name in run_files:
            write_run(run_files[name], run, name)
    measured[RANDOM_ORDER] = task.random_queries()
    return measured


def format_table(results: Mapping[str, Mapping[str, float]]) -> str:
    """Formats results in percent, a line for each system.

    Args:
        results: Name -> measure -> value; all have the same measures.

    Example:
    >>> print(format_table({"model": {"map": 0.5}, "bm25": {"map": 0.25}}))
                  map
    model       50.00
    bm25        25.00
    """
    width = max(len(name) for name in results)
    measures = list(next(iter(results.values())))
    head = " " * width + "".join(f"{name:>11}" for name in measures)
    lines = [
        f"{name:<{width}}"
        + "".join(f"{100 * values[measure]:11.2f}" for measure in measures)
        for name, values in results.items()
    ]
    return "\n".join([head, *lines])


if TYPE_CHECKING:  # the data package imports TensorFlow
    from keras_lstm_dssm.data.documents import DocumentFolder

DOCUMENT_MEASURES = ("p@10", "map", "mrr", "mrr@10", "recall@10")
"""The measures of `DocumentRetrieval`, in the order in which they are shown.
The first three are those of Bi and Ma 2017."""

RETRIEVE, CLUSTER = "retrieve", "cluster"

CHART_MEASURES = {
    "rerank": ("ndcg@10",),
    "retrieve": ("mrr@10",),
    "lists": ("p@1", "mrr"),
    CLUSTER: ("ari", "ami"),
}
"""Mode -> the measures in charts and overviews."""

MAIN_MEASURES = {mode: names[0] for mode, names in CHART_MEASURES.items()}
"""Mode -> the measure for significance, and for choices on dev by default."""

DocumentTasks = dict[str, Task | ClusterTask]
"""`"retrieve"` -> `DocumentRetrieval`, `"cluster"` -> `ClusterTask`; a folder
without queries or without classes has one of them only."""


class DocumentRetrieval(Task):
    """A task that ranks all documents of a split for its queries.

    A `Task` whose measures are `DOCUMENT_MEASURES` and whose `documents` are
    texts with one sentence on each line, see `document_text`. Queries and
    documents are encoded by the same system.

    Example:
    >>> task = DocumentRetrieval.from_folder(DocumentFolder("data/papers"))
    >>> run, by_query = task.measure(system_of(model))
    >>> mean(by_query, task.measures)["map"]
    0.41
    """

    __slots__ = ()

    @classmethod
    def from_folder(
        cls, folder: DocumentFolder, split: str = "test", min_relevant: int = 1
    ) -> DocumentRetrieval:
        """Reads the documents of a split, and queries with a relevant document.

        Args:
            folder: The folder.
            split: Name of a split with a qrels file.
            min_relevant: Grade from which a document is relevant.

        Raises:
            InputError: The split has no qrels or no documents, no query has
                a relevant document, or the folder is malformed.
        """
        return cls._of_texts(
            folder, _split_texts(folder, split)[0], split, min_relevant
        )

    @classmethod
    def _of_texts(
        cls,
        folder: DocumentFolder,
        texts: Mapping[str, str],
        split: str,
        min_relevant: int,
    ) -> DocumentRetrieval:
        qrels = with_relevant(folder.qrels(split), min_relevant)
        if not qrels:
            raise InputError(
                f"{folder.folder}: found no query of split {split!r} with a"
                f" document of grade {min_relevant} or more, expected one or"
                " more: lower min_relevant or choose another split"
            )
        queries = {query_id: folder.queries[query_id] for query_id in qrels}
        return cls(queries, texts, qrels, min_relevant, len(texts))

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures that `measure` computes, `DOCUMENT_MEASURES`."""
        return DOCUMENT_MEASURES

    def describe(self) -> str:
        """Returns the numbers of queries and documents in one line."""
        return (
            f"{len(self.queries):,} queries, {len(self.documents):,} documents"
        )


def document_tasks(
    folder: DocumentFolder,
    split: str = "test",
    min_relevant: int = 1,
    seeds: int = K_MEANS_SEEDS,
) -> DocumentTasks:
    """Makes the retrieval and the clustering task of a split of a folder.

    Args:
        folder: The folder; it is read once.
        split: Name of a split.
        min_relevant: Grade from which a document is relevant to a query.
        seeds: Number of k-means runs, see `ClusterTask`.

    Raises:
        InputError: The split has no documents, or neither a query with a
            relevant document nor two classes.

    Example:
    >>> tasks = document_tasks(DocumentFolder("data/papers"))
    >>> [task.describe() for task in tasks.values()]
    ['1,942 queries, 155 documents',
     '155 documents in 83 classes, 53 of one document']
    """
    texts, classes = _split_texts(folder, split)
    tasks: DocumentTasks = {}
    if split in folder.splits:
        tasks[RETRIEVE] = DocumentRetrieval._of_texts(
            folder, texts, split, min_relevant
        )
    if len(set(filter(None, classes.values()))) > 1:
        tasks[CLUSTER] = ClusterTask.from_classes(texts, classes, seeds)
    if not tasks:
        raise InputError(
            f"{folder.folder}: found neither qrels/{split}.tsv nor two classes"
            f" in split {split!r}, expected one of them to evaluate on: add"
            " queries or classes, or choose another split"
        )
    return tasks


def document_text(sentences: Sequence[str]) -> str:
    r"""Returns the text of a document, with one sentence on each line.

    Args:
        sentences: Sentences without line ends, as those of `DocumentFolder`.

    >>> document_text(["Sorts a list.", "It is stable."])
    'Sorts a list.\nIt is stable.'
    """
    return "\n".join(sentences)


def document_sentences(text: str) -> list[str]:
    r"""Splits the result of `document_text` into sentences, at least one.

    Example:
    >>> document_sentences("Sorts a list.\nIt is stable.")
    ['Sorts a list.', 'It is stable.']
    """
    return text.split("\n")


def evaluate_documents(
    tasks: Mapping[str, Any], systems: Mapping[str, Any]
) -> dict[str, dict[str, QueryMeasures]]:
    """Measures systems, random order and random clusters.

    Args:
        tasks: From `document_tasks`.
        systems: Name -> system. One without vectors, such as BM25, is left
            out of the clustering.

    Returns:
        Task -> name -> query id (for clustering, seed) -> measure -> value,
        with `"random"` as the last name. `mean_documents` averages them,
        `significance.compare_systems` tests their differences.

    Example:
    >>> tasks = document_tasks(DocumentFolder("data/papers"))
    >>> systems = {"keyvec": system_of(model), **document_baselines(texts)}
    >>> for results in mean_documents(evaluate_documents(tasks, systems)):
    ...     print(format_table(results))
    """
    with_vectors = {n: s for n, s in systems.items() if encoder_of(s)}
    return {
        name: measure_systems(
            task, with_vectors if name == CLUSTER else systems
        )
        for name, task in tasks.items()
    }


def mean_documents(
    measured: Mapping[str, Mapping[str, QueryMeasures]],
) -> dict[str, dict[str, dict[str, float]]]:
    """Averages the result of `evaluate_documents` over queries or seeds.

    Returns:
        Task -> name -> measure -> value; the inner mappings are the argument
        of `format_table`.

    Example:
    >>> of_queries = {"q1": {"map": 1.0}, "q2": {"map": 0.5}}
    >>> mean_documents({"retrieve": {"bm25": of_queries}})
    {'retrieve': {'bm25': {'map': 0.75}}}
    """
    return {
        task: {
            name: mean(values, list(next(iter(values.values()))))
            for name, values in systems.items()
        }
        for task, systems in measured.items()
    }


def _split_texts(
    folder: DocumentFolder, split: str
) -> tuple[dict[str, str], dict[str, str]]:
    """Returns document id -> text, and document id -> class."""
    texts, classes = {}, {}
    for document in folder.of(split):
        texts[document.id] = document_text(document.sentences)
        classes[document.id] = document.label
    if not texts:
        raise InputError(
            f"{folder.folder}: found no document of split {split!r}, expected"
            " one or more: choose another split"
        )
    return texts, classes


DOCUMENT_ORDER = "document order"


class ConstantScorer(System):
    """Gives all documents one score, which stands for a random order.

    Example:
    >>> candidates, titles = {"q": ["d1", "d2"]}, {"d1": "bolt", "d2": "nut"}
    >>> ConstantScorer().list_scores({"q": "nut"}, candidates, titles)
    {'q': {'d1': 0.0, 'd2': 0.0}}
    """

    def list_scores(
        self,
        queries: Mapping[str, str],
        candidates: Mapping[str, Sequence[str]],
        documents: Mapping[str, str],
    ) -> ListScores:
        """Scores candidates; see `System.list_scores`."""
        return {q: dict.fromkeys(ids, 0.0) for q, ids in candidates.items()}


class DocumentOrder(System):
    """Keeps the order of the input, as a stable sort by one score would.

    Where answers are listed in the order of the text that they come from,
    this order is better than that of many a model. A model whose measures
    are exactly those of this order has given all documents one score.

    Example:
    >>> candidates, titles = {"q": ["d1", "d2"]}, {"d1": "bolt", "d2": "nut"}
    >>> list(DocumentOrder().rerank({"q": "nut"}, candidates, titles)["q"])
    ['d1', 'd2']
    """

    def list_scores(
        self,
        queries: Mapping[str, str],
        candidates: Mapping[str, Sequence[str]],
        documents: Mapping[str, str],
    ) -> ListScores:
        """Scores candidates; see `System.list_scores`."""
        return {
            query_id: {d: -float(rank) for rank, d in enumerate(ids)}
            for query_id, ids in candidates.items()
        }


def list_measures(
    scores: ListScores, qrels: Qrels, min_relevant: int = 1
) -> QueryMeasures:
    """Computes the measures of each query, in expectation over ties.

    `measures.evaluate_queries` measures a `Run`, in which ties have been
    broken. This function takes the scores themselves.

    Args:
        scores: Query id -> document id -> score; a query that is missing
            gets 0.
        qrels: Query id -> document id -> grade; other documents have 0.
        min_relevant: Grade from which a document counts as relevant.

    Returns:
        Query id -> measure -> value, for the queries with a relevant
        document; the measures are `LIST_MEASURES`.

    Raises:
        ValueError: A score is NaN or infinite.
        InputError: See `measures.evaluate`.

    Example:
    >>> list_measures({"q": {"a": 1.0, "b": 1.0}}, {"q": {"a": 1}})["q"]["mrr"]
    0.75
    """
    values: QueryMeasures = {}
    for query_id, judged in with_relevant(qrels, min_relevant).items():
        of_query = scores.get(query_id)
        if not of_query:
            values[query_id] = dict.fromkeys(LIST_MEASURES, 0.0)
            continue
        if not np.isfinite(list(of_query.values())).all():
            raise ValueError(f"query {query_id}: a score is not finite")
        expected = expected_measures(
            tie_groups(of_query, judged), judged.values(), min_relevant
        )
        values[query_id] = {name: expected[name] for name in LIST_MEASURES}
    return values


def evaluate_lists(
    task: Task, systems: Mapping[str, System]
) -> dict[str, QueryMeasures]:
    """Measures systems, random order and document order on judged lists.

    Args:
        task: The queries and their judged documents, of mode `"rerank"`.
        systems: Name -> system.

    Returns:
        Name -> query id -> measure -> value from 0 to 1, with `"random"` and
        `"document order"` as the last.

    Example:
    >>> task = Task.from_collection(collection, "test")
    >>> systems = {"bm25": BM25System(), "mine": PairSystem(model.score_pairs)}
    >>> for name, queries in evaluate_lists(task, systems).items():
    ...     print(name, mean_of_lists(queries)["p@1"])
    """
    candidates = {q: list(judged) for q, judged in task.qrels.items()}
    references: dict[str, System] = {
        RANDOM_ORDER: ConstantScorer(),
        DOCUMENT_ORDER: DocumentOrder(),
    }
    return {
        name: list_measures(
            system.list_scores(task.queries, candidates, task.documents),
            task.qrels,
            task.min_relevant,
        )
        for name, system in {**systems, **references}.items()
    }


def mean_of_lists(values: QueryMeasures) -> dict[str, float]:
    """Averages each of `LIST_MEASURES` over the queries.

    Example:
    >>> scores, qrels = {"q": {"d1": 2.0, "d2": 1.0}}, {"q": {"d1": 1, "d2": 0}}
    >>> mean_of_lists(list_measures(scores, qrels))["p@1"]
    1.0
    """
    return mean(values, LIST_MEASURES)


class ListTask(Task):
    """A task of judged lists, measured in expectation over ties.

    Its measures are `LIST_MEASURES`, and a system is a `System`: it must
    give scores. A system that gives all documents one score has the measures
    of random order, while a `Task` breaks its ties by a hash.

    Example:
    >>> task = ListTask.from_collection(collection, "test")
    >>> run, by_query = task.measure(PairSystem(model.score_pairs))
    >>> mean_of_lists(by_query)["p@1"]
    0.61
    """

    __slots__ = ()

    @property
    def measures(self) -> tuple[str, ...]:
        """The names of the measures."""
        return LIST_MEASURES

    def measure(self, system: System) -> tuple[Run, QueryMeasures]:
        """Returns the run of a system, and the measures of each query.

        The measures are those of the scores themselves; in the run, ties are
        broken (see `Ranker`).
        """
        candidates = {q: list(judged) for q, judged in self.qrels.items()}
        scores = system.list_scores(self.queries, candidates, self.documents)
        by_query = list_measures(scores, self.qrels, self.min_relevant)
        return rank_lists(scores), by_query

    def random_queries(self) -> QueryMeasures:
        """Returns the expected measures of random order for each query."""
        return self.measure(ConstantScorer())[1]
