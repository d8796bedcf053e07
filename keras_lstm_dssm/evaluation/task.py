"""Task: queries and documents to evaluate systems on."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.measures import (
    LARGEST_GRADE,
    MEASURES,
    QueryMeasures,
    evaluate,
    evaluate_queries,
    mean,
    random_order,
    with_relevant,
)
from keras_lstm_dssm.evaluation.ranking import Qrels, Run, System
from keras_lstm_dssm.evaluation.trec import write_run
from keras_lstm_dssm.settings.choices import MODES, RANDOM_ORDER

if TYPE_CHECKING:  # the data package imports TensorFlow
    from keras_lstm_dssm.data import Collection


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
    >>> _, measured = task.measure(dssm.baselines.BM25System())
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
    from keras_lstm_dssm.data import click_grades

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
    task: Task,
    systems: Mapping[str, System],
    run_files: Mapping[str, str | os.PathLike[str]] | None = None,
) -> dict[str, QueryMeasures]:
    """Measures systems and random order on each query of a task.

    Args:
        task: See `evaluate_systems`.
        systems: See `evaluate_systems`.
        run_files: See `evaluate_systems`.

    Returns:
        Name -> query id -> measure -> value, with `random` as the last.
    """
    measured = {}
    for name, system in systems.items():
        run, measured[name] = task.measure(system)
        if run_files and name in run_files:
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
