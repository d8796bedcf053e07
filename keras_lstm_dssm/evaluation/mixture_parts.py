"""The parts of a mixture: systems whose scores have a common scale."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.dense_system import DenseSystem
from keras_lstm_dssm.evaluation.model_system import system_of
from keras_lstm_dssm.evaluation.ranking import ListScorer, ListScores


class CorpusPart(ListScorer):
    """Scales the scores of a system that scores all titles of a corpus.

    For each query, the scaled score is (s - l) / (h - l), where h is the
    highest and l the lowest score of a title of the corpus for the query; 0
    if they are equal. The lowest score of BM25 is 0, unless every title has a
    word of the query, so its scores are divided by the query's largest.
    The scaled scores are the same in reranking and in whole-corpus search.

    Args:
        system: A `baselines.ScoringSystem`, such as `BM25System`.
    """

    def __init__(self, system: Any) -> None:
        self.system = system

    def scores(
        self, queries: Sequence[str], titles: tuple[str, ...]
    ) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
        """Scores all titles for each query, one query at a time.

        Args:
            queries: The queries' texts.
            titles: The titles of the whole corpus.

        Returns:
            For each query, scores from 0 to 1, float32 `[titles]`, and the
            positions of the titles that match it, `None` if all do.
        """
        for scores, match in self.system.scores(queries, titles):
            yield _from_0_to_1(scores), match

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
        return {
            query_id: dict(
                zip(ids, scores[[row[d] for d in ids]].tolist(), strict=True)
            )
            for (query_id, ids), (scores, _) in zip(
                candidates.items(), scored, strict=True
            )
        }


class ListPart(ListScorer):
    """Scales the scores of a system that only scores lists of candidates.

    The scaled score is (s - l) / (h - l), with the highest score h and the
    lowest score l of the query's candidates; 0 if all are equal.

    Args:
        system: A `ListScorer`, such as the `PairSystem` of a pair scorer.
    """

    def __init__(self, system: ListScorer) -> None:
        self.system = system

    def list_scores(
        self,
        queries: Mapping[str, str],
        candidates: Mapping[str, Sequence[str]],
        documents: Mapping[str, str],
    ) -> ListScores:
        """Scores candidates; see `ListScorer.list_scores`."""
        lists = self.system.list_scores(queries, candidates, documents)
        return {
            query_id: dict(
                zip(
                    scores,
                    _from_0_to_1(list(scores.values())).tolist(),
                    strict=True,
                )
            )
            for query_id, scores in lists.items()
        }


Part = DenseSystem | CorpusPart | ListPart
"""A system with scores on the scale of mixtures; cosines are used as they
are."""


def mixture_part(name: str, system: Any) -> Part:
    """Returns a system as the part of a mixture.

    Args:
        name: The part's name, for the error message.
        system: A trained `TwoTower` or `PairScorer`; a `System` with
            `list_scores`; an encoder, which is an object with `encode(texts)`
            or a function from n texts to float `[n, d]`, for queries and
            documents.

    Raises:
        InputError: It is none of these.
    """
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
    if isinstance(system, DenseSystem):
        return system
    if hasattr(system, "scores"):
        return CorpusPart(system)
    return ListPart(system)


def _from_0_to_1(scores: np.ndarray | Sequence[float]) -> np.ndarray:
    """Maps the lowest score to 0 and the highest to 1; equal ones to 0."""
    scores = np.asarray(scores, np.float32)
    if not scores.size:
        return scores
    lowest = scores.min()
    spread = scores.max() - lowest
    return (scores - lowest) / spread if spread else np.zeros_like(scores)
