"""Tasks: queries, documents and relevance judgements to measure systems on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from keras_lstm_dssm.errors import InputError, check_at_least
from keras_lstm_dssm.evaluation.clustering import K_MEANS_SEEDS, ClusterTask
from keras_lstm_dssm.evaluation.measures import (
    MEASURES,
    QueryMeasures,
    evaluate_queries,
    expected_queries,
    mean,
    random_order,
    with_relevant,
)
from keras_lstm_dssm.evaluation.runs import Qrels, Run, System, rank_lists
from keras_lstm_dssm.settings.fields import LIST_MEASURES, MODES, RANDOM_ORDER

if TYPE_CHECKING:  # the data package imports TensorFlow
    from keras_lstm_dssm.data.collection import Collection
    from keras_lstm_dssm.data.documents import DocumentFolder
    from keras_lstm_dssm.evaluation.bm25 import FieldTexts

DOCUMENT_MEASURES = ("p@10", "map", "mrr", "mrr@10", "recall@10")
"""The measures of document retrieval, in the order in which tables show them.
Bi and Ma 2017 report the first three measures."""

RERANK, RETRIEVE = MODES
CLUSTER, LISTS = "cluster", "lists"

MAIN_MEASURES = {
    RERANK: "ndcg@10", RETRIEVE: "mrr@10", LISTS: "p@1", CLUSTER: "ari",
}  # fmt: skip
"""Mode -> measure for significance tests and, by default, tuning on dev."""


class Task(NamedTuple):
    """Queries, and documents to rank for each query.

    Attributes:
        queries: Query id -> text.
        documents: Document id -> text, the whole corpus. Documents of several
            sentences have a sentence on each line.
        qrels: Query id -> document id -> grade.
        min_relevant: Grade from which a document is relevant.
        depth: Number of documents to retrieve from the corpus for each query;
            `None` to rerank the judged documents of each query.
        measures: Names of the measures.
        ties: `"broken"`: `TieBreaker` orders documents with equal scores.
            `"expected"`: measures are means over all orders of documents with
            equal scores; `depth` must be `None`.
        fields: The fields of the documents for BM25; `None` if documents have
            no fields.

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
    measures: tuple[str, ...] = MEASURES
    ties: str = "broken"
    fields: FieldTexts | None = None

    @classmethod
    def from_collection(
        cls,
        collection: Collection,
        split: str = "test",
        mode: str = "rerank",
        min_relevant: int = 1,
        depth: int = 1000,
    ) -> Task:
        """Makes the task to rank documents for the queries of a split.

        Queries that cannot show differences between systems are left out. A
        query needs a relevant document. For the modes `"rerank"` and `"lists"`,
        a query needs two or more judged documents, because the order of one
        document is always perfect.

        Args:
            collection: The collection. `Collection.graded_qrels` replaces
                numbers of clicks by grades.
            split: Name of a split of the collection.
            mode: `"rerank"` orders the judged documents of each query;
                `"retrieve"` ranks the whole corpus; `"lists"` orders judged
                documents, and averages `LIST_MEASURES` over all orders of ties.
            min_relevant: Grade from which a document is relevant.
            depth: Number of documents to retrieve in retrieve mode.

        Raises:
            InputError: The split or the mode is unknown, `depth` or
                `min_relevant` is below 1, or no query is left.

        Example:
        >>> task = Task.from_collection(collection, "test", "retrieve")
        """
        if mode not in (*MODES, LISTS):
            raise InputError(
                f"unknown mode {mode!r}: choose one of"
                f" {', '.join((*MODES, LISTS))}"
            )
        check_at_least(1, depth=depth)
        qrels = with_relevant(collection.graded_qrels(split), min_relevant)
        if mode != RETRIEVE:
            qrels = {
                q: grades for q, grades in qrels.items() if len(grades) > 1
            }
        if not qrels:
            verb, second = "rerank", " and a second judged document"
            if mode == RETRIEVE:
                verb, second = mode, ""
            raise InputError(
                f"split {split!r} has no query to {verb}: a query needs a"
                f" document of grade {min_relevant} or more{second}; try"
                " another mode or min_relevant"
            )
        queries = {query_id: collection.queries[query_id] for query_id in qrels}
        task = cls(
            queries,
            collection.documents,
            qrels,
            min_relevant,
            fields=collection.field_texts,
        )
        if mode == RETRIEVE:
            return task._replace(depth=depth)
        if mode == LISTS:
            return task._replace(measures=LIST_MEASURES, ties="expected")
        return task

    @classmethod
    def from_documents(
        cls, folder: DocumentFolder, split: str = "test", min_relevant: int = 1
    ) -> Task:
        """Makes the task to rank a split's documents for the split's queries.

        Queries without a relevant document are left out.

        Args:
            folder: The folder of documents.
            split: Name of a split with a qrels file.
            min_relevant: Grade from which a document is relevant.

        Raises:
            InputError: The split has no qrels or no documents, no query has
                a relevant document, or the folder is malformed.

        Example:
        >>> task = Task.from_documents(DocumentFolder("data/papers"))
        >>> run, by_query = task.measure(system_of(model))
        >>> mean(by_query)["map"]
        0.41
        """
        texts, _ = _split_texts(folder, [split])
        return cls._from_texts(folder, texts, split, min_relevant)

    @classmethod
    def _from_texts(
        cls,
        folder: DocumentFolder,
        texts: Mapping[str, str],
        split: str,
        min_relevant: int,
    ) -> Task:
        qrels = with_relevant(folder.qrels(split), min_relevant)
        if not qrels:
            raise InputError(
                f"{folder.folder}: found no query of split {split!r} with a"
                f" document of grade {min_relevant} or more, expected one or"
                " more: lower min_relevant or choose another split"
            )
        queries = {query_id: folder.queries[query_id] for query_id in qrels}
        return cls(
            queries, texts, qrels, min_relevant, len(texts), DOCUMENT_MEASURES
        )

    def describe(self) -> str:
        """Returns the numbers of queries and documents in one line."""
        return (
            f"{len(self.queries):,} queries, {len(self.documents):,} documents"
        )

    def accepts(self, system: System) -> bool:
        """Returns `True`: every system can rank."""
        return True

    def run(self, system: System) -> Run:
        """Returns the run of a system."""
        if self.depth is None:
            return system.rerank(self.queries, self._judged, self.documents)
        return system.retrieve(self.queries, self.documents, self.depth)

    def evaluate(self, run: Run) -> dict[str, float]:
        """Returns the measures of a run, averaged over its queries."""
        return mean(self._measure_run(run))

    def measure(self, system: System) -> tuple[Run, QueryMeasures]:
        """Returns the run of a system, and the measures of each query.

        Ties in the run are always broken, even with `ties="expected"`.
        """
        if self.ties == "broken":
            run = self.run(system)
            return run, self._measure_run(run)
        scores = system.list_scores(self.queries, self._judged, self.documents)
        return rank_lists(scores), expected_queries(
            scores, self.qrels, self.min_relevant, self.measures
        )

    def random(self) -> dict[str, float]:
        """Returns the exact expectation of each measure for random order."""
        return mean(self.random_queries())

    def random_queries(self) -> QueryMeasures:
        """Returns the expected measures of random order for each query."""
        sizes = {
            query_id: len(judged if self.depth is None else self.documents)
            for query_id, judged in self.qrels.items()
        }
        return random_order(
            self.qrels, sizes, self.min_relevant, self.depth, self.measures
        )

    @property
    def _judged(self) -> dict[str, list[str]]:
        return {q: list(judged) for q, judged in self.qrels.items()}

    def _measure_run(self, run: Run) -> QueryMeasures:
        return evaluate_queries(
            run, self.qrels, self.min_relevant, self.measures
        )


AnyTask = Task | ClusterTask
"""A task to measure systems on, by ranking or by clustering."""

OnRun = Callable[[str, Run], object]
"""Function that is called with the name of a system and its run."""


def evaluate_systems(
    task: AnyTask,
    systems: Mapping[str, System],
    on_run: OnRun = lambda name, run: None,
) -> dict[str, dict[str, float]]:
    """Measures systems and random order on one task.

    Args:
        task: The task. A `ClusterTask` leaves out systems without vectors.
        systems: Name -> system.
        on_run: Function that is called with the name and the run of each
            system, for example to write the run by `write_run`. A
            `ClusterTask` has no runs.

    Returns:
        Name -> measure -> value, at most 1. The last name is `random`.

    Example:
    >>> task = Task.from_collection(collection, "test", "retrieve")
    >>> results = evaluate_systems(task, {"bm25": BM25System()})
    >>> print(format_table(results))
    """
    return means(measure_systems(task, systems, on_run))


def measure_systems(
    task: AnyTask,
    systems: Mapping[str, System],
    on_run: OnRun = lambda name, run: None,
) -> dict[str, QueryMeasures]:
    """Measures systems and random order on each query of a task.

    The arguments are as in `evaluate_systems`. Returns name -> query id ->
    measure -> value; for clustering, seeds replace query ids.

    Example:
    >>> measured = measure_systems(task, {"bm25": BM25System()})
    >>> measured["bm25"]["q1"]["mrr@10"]
    0.5
    """
    measured = {}
    for name, system in systems.items():
        if not task.accepts(system):
            continue
        run, measured[name] = task.measure(system)
        if run is not None:
            on_run(name, run)
    measured[RANDOM_ORDER] = task.random_queries()
    return measured


def means(measured: Mapping[str, QueryMeasures]) -> dict[str, dict[str, float]]:
    """Averages the results of `measure_systems` over queries or seeds."""
    return {name: mean(by_query) for name, by_query in measured.items()}


def format_table(results: Mapping[str, Mapping[str, float]]) -> str:
    """Formats results in percent, with a line for each system.

    Args:
        results: System -> measure -> value. All systems have the same measures.

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


def document_tasks(
    folder: DocumentFolder,
    split: str = "test",
    min_relevant: int = 1,
    seeds: int = K_MEANS_SEEDS,
    clustered: Sequence[str] = (),  # splits to cluster; by default `split`
) -> dict[str, AnyTask]:
    """Makes the tasks that the data allows: name -> task."""
    texts, classes = _split_texts(folder, [split])
    tasks: dict[str, AnyTask] = {}
    if split in folder.splits:
        tasks[RETRIEVE] = Task._from_texts(folder, texts, split, min_relevant)
    if clustered:
        texts, classes = _split_texts(folder, clustered)
    if len(set(filter(None, classes.values()))) > 1:
        tasks[CLUSTER] = ClusterTask.from_classes(texts, classes, seeds)
    if not tasks:
        raise InputError(
            f"{folder.folder}: found neither qrels/{split}.tsv nor two classes"
            f" in split {split!r}, expected queries or classes: add queries"
            " or classes, or choose another split"
        )
    return tasks


def document_text(sentences: Sequence[str]) -> str:
    """Joins sentences to a text with a sentence on each line."""
    return "\n".join(sentences)


def document_sentences(text: str) -> list[str]:
    """Splits the result of `document_text` into sentences."""
    return text.split("\n")


def _split_texts(
    folder: DocumentFolder, splits: Sequence[str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Returns the texts and the classes of the splits' documents, by id."""
    texts, classes = {}, {}
    for document in chain.from_iterable(map(folder.of, splits)):
        texts[document.id] = document_text(document.sentences)
        classes[document.id] = document.label
    if not texts:
        raise InputError(
            f"{folder.folder}: found no document of split {splits[0]!r},"
            " expected one or more: choose another split"
        )
    return texts, classes
