"""ScoringSystem: base of the systems that score every title of a corpus."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from keras_lstm_dssm.evaluation.ranking import (
    ListScorer,
    ListScores,
    Ranker,
    Run,
)

Scores = tuple[np.ndarray, np.ndarray | None]
"""Float `[titles]`, a score for each title; and the positions of the titles
that match the query, or `None` if all do."""


class ScoringSystem(ListScorer):
    """Reranks and retrieves by a score for each title of a corpus.

    The statistics of words are those of the whole corpus in both modes, and
    `rerank` orders candidates by the same scores as `retrieve`.

    Attributes:
        parameters: Number of learnt parameters.
    """

    parameters = 0

    @abstractmethod
    def scores(
        self, queries: Sequence[str], titles: tuple[str, ...]
    ) -> Iterator[Scores]:
        """Yields the `Scores` of all titles for each query in turn.

        Args:
            queries: The queries' texts.
            titles: The titles of the whole corpus.
        """

    def list_scores(
        self,
        queries: Mapping[str, str],
        candidates: Mapping[str, Sequence[str]],
        documents: Mapping[str, str],
    ) -> ListScores:
        """Scores candidates; see `ListScorer.list_scores`."""
        row = {document_id: i for i, document_id in enumerate(documents)}
        texts = [queries[query_id] for query_id in candidates]
        scored = self.scores(texts, tuple(documents.values()))
        lists = {}
        for query_id, (scores, _) in zip(candidates, scored, strict=True):
            ids = candidates[query_id]
            of_ids = scores[[row[document_id] for document_id in ids]]
            lists[query_id] = dict(zip(ids, of_ids.tolist(), strict=True))
        return lists

    def retrieve(
        self,
        queries: Mapping[str, str],
        documents: Mapping[str, str],
        depth: int,
    ) -> Run:
        """Searches the whole corpus; see `System.retrieve`."""
        ranker = Ranker(list(documents))
        scored = self.scores(list(queries.values()), tuple(documents.values()))
        run = {}
        for query_id, (scores, match) in zip(queries, scored, strict=True):
            matching = scores if match is None else scores[match]
            run[query_id] = ranker.rank(query_id, matching, depth, match)
        return run
