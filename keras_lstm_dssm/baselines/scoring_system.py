"""ScoringSystem: what scores every title of the corpus for a query."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from keras_lstm_dssm.evaluation.ranking import Ranker, Run

Scores = tuple[np.ndarray, np.ndarray | None]
"""Float `[n]`, a score for each title; and the positions of the titles that
match at all, or `None` when all do."""


class ScoringSystem(ABC):
    """Both modes of a `System`, over a score of each title of the corpus.

    The corpus gives the statistics of words in both modes. `rerank` orders
    the candidates by the very scores that `retrieve` finds titles by.

    Attributes:
        parameters: Numbers learnt in training.
    """

    parameters = 0

    @abstractmethod
    def scores(
        self, queries: Sequence[str], titles: tuple[str, ...]
    ) -> Iterator[Scores]:
        """Scores all titles, a query at a time."""

    def rerank(
        self,
        queries: Mapping[str, str],
        candidates: Mapping[str, Sequence[str]],
        documents: Mapping[str, str],
    ) -> Run:
        """Orders candidates; see `System.rerank`."""
        row = {document_id: i for i, document_id in enumerate(documents)}
        texts = [queries[query_id] for query_id in candidates]
        scored = self.scores(texts, tuple(documents.values()))
        return {
            query_id: Ranker(found).rank(
                query_id, scores[[row[document_id] for document_id in found]]
            )
            for (query_id, found), (scores, _) in zip(
                candidates.items(), scored, strict=True
            )
        }

    def retrieve(
        self,
        queries: Mapping[str, str],
        documents: Mapping[str, str],
        depth: int,
    ) -> Run:
        """Searches the whole corpus; see `System.retrieve`."""
        ranker = Ranker(list(documents))
        scored = self.scores(list(queries.values()), tuple(documents.values()))
        return {
            query_id: ranker.rank(
                query_id,
                scores if match is None else scores[match],
                depth,
                match,
            )
            for query_id, (scores, match) in zip(queries, scored, strict=True)
        }
