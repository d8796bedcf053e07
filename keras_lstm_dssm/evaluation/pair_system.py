"""PairSystem: reorders candidates by the scores of pairs of texts."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.ranking import (
    ListScorer,
    ListScores,
    Run,
    System,
)

ScorePairs = Callable[[list[str], list[str]], np.ndarray]
"""Function from n queries and n documents to their scores, float `[n]`."""


class PairSystem(ListScorer):
    """Reorders candidates by a model that reads query and document together.

    Args:
        score_pairs: Function from n queries and n titles to float `[n]`,
            such as `PairScorer.score_pairs`.
        first_stage: System that finds the candidates in `retrieve`; by
            default `retrieve` is not supported, because a score for each
            document of the corpus would have to be computed.
        candidates: Largest number of documents that are scored for a query
            in `retrieve`. Default `None`: as many as are retrieved.

    Example:
    >>> system = PairSystem(scorer.score_pairs, first_stage=BM25System())
    >>> run = system.retrieve(queries, documents, depth=100)
    """

    def __init__(
        self,
        score_pairs: ScorePairs,
        first_stage: System | None = None,
        candidates: int | None = None,
    ) -> None:
        self.score_pairs = score_pairs
        self.first_stage = first_stage
        self.candidates = candidates

    def list_scores(
        self,
        queries: Mapping[str, str],
        candidates: Mapping[str, Sequence[str]],
        documents: Mapping[str, str],
    ) -> ListScores:
        """Scores candidates; see `ListScorer.list_scores`."""
        pairs = [
            (query_id, document_id)
            for query_id, document_ids in candidates.items()
            for document_id in document_ids
        ]
        scores = self.score_pairs(
            [queries[query_id] for query_id, _ in pairs],
            [documents[document_id] for _, document_id in pairs],
        )
        lists: ListScores = {query_id: {} for query_id in candidates}
        for (query_id, document_id), score in zip(
            pairs, scores.tolist(), strict=True
        ):
            lists[query_id][document_id] = score
        return lists

    def retrieve(
        self,
        queries: Mapping[str, str],
        documents: Mapping[str, str],
        depth: int,
    ) -> Run:
        """Reorders the documents that the first stage retrieves.

        Raises:
            InputError: There is no first stage.
        """
        if self.first_stage is None:
            raise InputError(
                "a pair scorer cannot search a corpus: give PairSystem a"
                " first_stage that finds candidates, or rerank judged lists"
            )
        if self.candidates is not None:
            depth = min(depth, self.candidates)
        found = self.first_stage.retrieve(queries, documents, depth)
        candidates = {query_id: list(run) for query_id, run in found.items()}
        return self.rerank(queries, candidates, documents)
