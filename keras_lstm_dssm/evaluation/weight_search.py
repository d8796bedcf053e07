"""choose_weights: the weights of a mixture, chosen by a measure on dev."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.dense_system import DenseSystem
from keras_lstm_dssm.evaluation.measures import mean
from keras_lstm_dssm.evaluation.mixture import Mixture
from keras_lstm_dssm.evaluation.mixture_parts import mixture_part
from keras_lstm_dssm.evaluation.mixture_weights import weighted_sum
from keras_lstm_dssm.evaluation.ranking import (
    ListScorer,
    ListScores,
    Ranker,
    Run,
)
from keras_lstm_dssm.evaluation.remembered_vectors import remembering
from keras_lstm_dssm.evaluation.task import Task


class ChosenWeights(NamedTuple):
    """The result of `choose_weights`.

    Attributes:
        weights: Name -> weight; their sum is 1.
        value: The measure on dev with these weights, from 0 to 1.
        alone: Name -> the measure on dev of the part alone.
        tried: Number of weightings that were measured.

    Example:
    >>> alone = {"model": 0.44, "bm25": 0.41}
    >>> chosen = ChosenWeights({"model": 0.7, "bm25": 0.3}, 0.5, alone, 11)
    >>> max(chosen.weights, key=chosen.weights.get)
    'model'
    """

    weights: dict[str, float]
    value: float
    alone: dict[str, float]
    tried: int


def choose_weights(
    parts: Mapping[str, Any],
    task: Task,
    measure: str = "mrr@10",
    steps: int = 20,
) -> ChosenWeights:
    """Chooses the weights of a `Mixture` that rank a dev task best.

    The weights are multiples of 1/steps whose sum is 1. The search starts
    from the part that is best alone. For each pair of parts in turn, it
    measures all divisions of their weight between the two, and takes the
    best, until no pair gives a better one. Of weightings with equal measures
    the most even one is taken. With two parts this measures every weighting.
    The same task gives the same weights.

    The scores of each part are computed once. In whole-corpus search, the
    documents are the best of each part of weight above 0: `task.depth`, but
    at most 100, or 10 k if that is more, for a measure @k.

    Args:
        parts: Name -> part, see `Mixture`. Its order has an effect only on
            weightings that are equal in measure and evenness.
        task: The dev queries; never those that the mixture is tested on. A
            `ListTask` measures in expectation over ties.
        measure: The measure to maximise, one of `task.measures`.
        steps: Number of steps from 0 to 1. Default 20: weights of 0.05.

    Raises:
        InputError: The measure is unknown, `steps` is below 1, a part is no
            system, or cannot search the corpus of the task.

    Example:
    >>> task = Task.from_collection(collection, "dev", "retrieve")
    >>> choose_weights({"best": model, "bm25": BM25System()}, task).weights
    {'best': 0.85, 'bm25': 0.15}
    """
    if measure not in task.measures:
        raise InputError(
            f"measure {measure!r}: expected one of {', '.join(task.measures)}"
        )
    if steps < 1:
        raise InputError(f"steps is {steps}: expected 1 or more")
    if not parts:
        raise InputError("found no part of a mixture: expected one or more")
    scored = _ScoredParts(
        {name: _remembering(name, part) for name, part in parts.items()},
        task,
        measure,
    )
    values: dict[tuple[int, ...], float] = {}

    def order(counts: tuple[int, ...]) -> tuple[float, int]:
        if counts not in values:
            values[counts] = scored.value([c / steps for c in counts])
        return values[counts], -sum(count**2 for count in counts)

    alone = [
        tuple(steps * (part == other) for other in range(len(parts)))
        for part in range(len(parts))
    ]
    best = max(alone, key=order)
    before = None
    while best != before:
        before = best
        for pair in itertools.combinations(range(len(parts)), 2):
            best = max([best, *_divisions(best, *pair)], key=order)
    return ChosenWeights(
        {n: c / steps for n, c in zip(parts, best, strict=True)},
        values[best],
        {n: values[c] for n, c in zip(parts, alone, strict=True)},
        len(values),
    )


def _divisions(
    counts: tuple[int, ...], first: int, second: int
) -> Iterator[tuple[int, ...]]:
    """Yields `counts` with every split of `first` + `second` between these.

    Args:
        counts: The weight of each part, in steps.
        first: Index of a part.
        second: Index of another part.
    """
    total = counts[first] + counts[second]
    for count in range(total + 1):
        divided = list(counts)
        divided[first], divided[second] = count, total - count
        yield tuple(divided)


def _remembering(name: str, part: Any) -> Any:
    """Returns a part that encodes each text once during a search."""
    system = mixture_part(name, part)
    return remembering(system) if isinstance(system, DenseSystem) else part


class _ScoredParts:
    """Measures weightings of scores that are computed once.

    Args:
        parts: Name -> part, see `Mixture`.
        task: The task.
        measure: The measure, one of `task.measures`.

    Attributes:
        ids: Query id -> ids of the candidates.
        scores: Query id -> the candidates' scores, `[n]` for each part.
        found: Query id -> which candidates each part finds, bool
            `[parts, n]`.
    """

    def __init__(
        self, parts: Mapping[str, Any], task: Task, measure: str
    ) -> None:
        alone = [Mixture({name: part}) for name, part in parts.items()]
        self._ranks = task.depth
        cutoff = measure.partition("@")[2]
        if cutoff and task.depth is not None:
            # Later ranks do not change the measure, and a document far below
            # them in all parts does not come before them in their sum.
            self._ranks = min(task.depth, int(cutoff))
            found = min(task.depth, max(100, 10 * int(cutoff)))
            task = task._replace(depth=found)
        by_part = [_candidates(system, task) for system in alone]
        self.ids = {
            q: list(dict.fromkeys(d for of_part in by_part for d in of_part[q]))
            for q in task.queries
        }
        lists = [
            system.list_scores(task.queries, self.ids, task.documents)
            for system in alone
        ]
        self._task = task
        self._measure = measure
        self._ranker = Ranker(list(task.documents))
        row = {d: number for number, d in enumerate(task.documents)}
        self._rows, self.scores, self.found = {}, {}, {}
        for query_id, ids in self.ids.items():
            self._rows[query_id] = np.array([row[d] for d in ids], np.intp)
            self.scores[query_id] = [
                np.array(list(of_part[query_id].values()), np.float32)
                for of_part in lists
            ]
            finders = [set(of_part[query_id]) for of_part in by_part]
            self.found[query_id] = np.array(
                [[d in finder for d in ids] for finder in finders], bool
            )

    def value(self, weights: Sequence[float]) -> float:
        """Returns the measure of the task with these weights."""
        _, by_query = self._task.measure(_Weighted(self, weights))
        return mean(by_query, [self._measure])[self._measure]

    def total(self, query_id: str, weights: Sequence[float]) -> np.ndarray:
        """Returns the weighted scores of a query's candidates."""
        return weighted_sum(weights, self.scores[query_id])

    def rank(self, query_id: str, weights: Sequence[float]) -> dict[str, float]:
        """Ranks what the parts of weight above 0 find for a query."""
        found = self.found[query_id][np.array(weights) > 0].any(axis=0)
        return self._ranker.rank(
            query_id,
            self.total(query_id, weights)[found],
            self._ranks,
            self._rows[query_id][found],
        )


class _Weighted(ListScorer):
    """Ranks by scores that are computed already.

    Args:
        scored: The scores.
        weights: A weight for each part.
    """

    def __init__(self, scored: _ScoredParts, weights: Sequence[float]) -> None:
        self._scored = scored
        self._weights = weights

    def list_scores(
        self,
        queries: Mapping[str, str],
        candidates: Mapping[str, Sequence[str]],
        documents: Mapping[str, str],
    ) -> ListScores:
        """Returns the weighted scores; see `ListScorer.list_scores`."""
        return {
            query_id: dict(
                zip(
                    self._scored.ids[query_id],
                    self._scored.total(query_id, self._weights).tolist(),
                    strict=True,
                )
            )
            for query_id in candidates
        }

    def retrieve(
        self,
        queries: Mapping[str, str],
        documents: Mapping[str, str],
        depth: int,
    ) -> Run:
        """Ranks the parts' best documents; see `System.retrieve`."""
        return {
            query_id: self._scored.rank(query_id, self._weights)
            for query_id in queries
        }


def _candidates(system: Mixture, task: Task) -> Mapping[str, Iterable[str]]:
    """Returns the judged documents, or those that a system retrieves."""
    return task.qrels if task.depth is None else task.run(system)
