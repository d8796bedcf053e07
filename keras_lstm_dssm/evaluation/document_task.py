"""Tasks of document vectors: retrieval for queries, and clustering."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.clustering import (
    K_MEANS_SEEDS,
    ClusterTask,
    encoder_of,
)
from keras_lstm_dssm.evaluation.measures import (
    QueryMeasures,
    mean,
    with_relevant,
)
from keras_lstm_dssm.evaluation.task import RANDOM_ORDER, Task

if TYPE_CHECKING:  # the data package imports TensorFlow
    from keras_lstm_dssm.data import DocumentFolder

DOCUMENT_MEASURES = ("p@10", "map", "mrr", "mrr@10", "recall@10")
"""The measures of `DocumentRetrieval`, in the order in which they are shown.
The first three are those of Bi and Ma 2017."""

RETRIEVE, CLUSTER = "retrieve", "cluster"

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
    """Makes the tasks for which a split of a folder has queries or classes.

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
    measured: dict[str, dict[str, QueryMeasures]] = {}
    for name, task in tasks.items():
        measured[name] = {
            system: task.measure(ranker)[1]
            for system, ranker in systems.items()
            if name != CLUSTER or encoder_of(ranker) is not None
        }
        measured[name][RANDOM_ORDER] = task.random_queries()
    return measured


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
