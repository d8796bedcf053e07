"""Several systems on one split of a collection, side by side."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.measures import (
    MEASURES,
    QueryMeasures,
    evaluate,
    mean,
    random_order,
    with_relevant,
)
from keras_lstm_dssm.evaluation.ranking import Qrels, Run, System
from keras_lstm_dssm.evaluation.trec import write_run

if TYPE_CHECKING:  # the data package imports TensorFlow
    from keras_lstm_dssm.data import Collection

MODES = ("rerank", "retrieve")
RANDOM = "random"


class Task(NamedTuple):
    """What every system is asked: the queries, and what to order for them.

    `depth` is None when the judged titles are reranked.
    """

    queries: dict[str, str]
    documents: Mapping[str, str]
    qrels: Qrels
    min_relevant: int = 1
    depth: int | None = None

    @classmethod
    def of(
        cls,
        collection: Collection,
        split: str = "test",
        mode: str = "rerank",
        min_relevant: int = 1,
        depth: int = 1000,
    ) -> Task:
        """Selects the queries of a split that can tell systems apart.

        Left out are queries without a relevant title and, in rerank mode,
        queries with one judged title, which any order ranks perfectly.

        Args:
            collection: The data.
            split: Name of one of its splits.
            mode: `rerank` orders the judged titles of each query;
                `retrieve` finds titles in the whole corpus.
            min_relevant: Grade from which a title counts as relevant.
            depth: Titles found for each query in retrieve mode.

        Raises:
            InputError: An unknown split or mode, `depth` or `min_relevant`
                below 1, or no query is left.
        """
        if mode not in MODES:
            raise InputError(
                f"unknown mode {mode!r}: choose one of {', '.join(MODES)}"
            )
        if depth < 1:
            raise InputError(f"depth is {depth}: expected 1 or more")
        qrels = with_relevant(collection.qrels(split), min_relevant)
        if mode == "rerank":
            qrels = {
                q: judged for q, judged in qrels.items() if len(judged) > 1
            }
        if not qrels:
            raise InputError(
                f"split {split!r} has no query to {mode}: it needs a title of"
                f" grade {min_relevant} or more"
                + " and a second judged one" * (mode == "rerank")
                + "; try another mode or min_relevant"
            )
        queries = {query_id: collection.queries[query_id] for query_id in qrels}
        limit = depth if mode == "retrieve" else None
        return cls(queries, collection.documents, qrels, min_relevant, limit)

    def run(self, system: System) -> Run:
        """Lets a system order the titles."""
        if self.depth is None:
            candidates = {q: list(judged) for q, judged in self.qrels.items()}
            return system.rerank(self.queries, candidates, self.documents)
        return system.retrieve(self.queries, self.documents, self.depth)

    def evaluate(self, run: Run) -> dict[str, float]:
        """Measures a run; see `measures.evaluate`."""
        return evaluate(run, self.qrels, self.min_relevant)

    def random(self) -> dict[str, float]:
        """Returns what a random order is expected to reach, exactly."""
        return mean(self.random_queries())

    def random_queries(self) -> QueryMeasures:
        """Returns the same query by query."""
        sizes = {
            query_id: len(judged if self.depth is None else self.documents)
            for query_id, judged in self.qrels.items()
        }
        return random_order(self.qrels, sizes, self.min_relevant, self.depth)


def evaluate_systems(
    task: Task,
    systems: Mapping[str, System],
    run_files: Mapping[str, str | os.PathLike[str]] | None = None,
) -> dict[str, dict[str, float]]:
    """Measures systems on one task, and random order beside them.

    Args:
        task: From `Task.of`.
        systems: Name -> system.
        run_files: Name -> file for the system's TREC run.

    Returns:
        Name -> measure -> value from 0 to 1, with `random` as the last.

    Example:
    >>> task = Task.of(collection, "test", "retrieve")
    >>> results = evaluate_systems(task, {"bm25": BM25System()})
    >>> print(format_table(results))
    """
    results = {}
    for name, system in systems.items():
        run = task.run(system)
        if run_files and name in run_files:
            write_run(run_files[name], run, name)
        results[name] = task.evaluate(run)
    results[RANDOM] = task.random()
    return results


def format_table(results: Mapping[str, Mapping[str, float]]) -> str:
    """Formats results in percent, a line for each system."""
    width = max(len(name) for name in results)
    head = " " * width + "".join(f"{name:>11}" for name in MEASURES)
    lines = [
        f"{name:<{width}}"
        + "".join(f"{100 * values[measure]:11.2f}" for measure in MEASURES)
        for name, values in results.items()
    ]
    return "\n".join([head, *lines])
