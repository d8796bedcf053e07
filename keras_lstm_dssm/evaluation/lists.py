"""Measures of judged lists, such as P@1 and MRR, with ties in expectation."""

from collections.abc import Mapping, Sequence

import numpy as np

from keras_lstm_dssm.evaluation.measures import (
    QueryMeasures,
    mean,
    with_relevant,
)
from keras_lstm_dssm.evaluation.ranking import (
    ListScorer,
    ListScores,
    Qrels,
    Run,
    rank_lists,
)
from keras_lstm_dssm.evaluation.task import RANDOM_ORDER, Task
from keras_lstm_dssm.evaluation.ties import expected_measures, tie_groups
from keras_lstm_dssm.settings.choices import LIST_MEASURES

DOCUMENT_ORDER = "document order"


class ConstantScorer(ListScorer):
    """Gives all documents one score, which stands for a random order.

    Example:
    >>> candidates, titles = {"q": ["d1", "d2"]}, {"d1": "bolt", "d2": "nut"}
    >>> ConstantScorer().list_scores({"q": "nut"}, candidates, titles)
    {'q': {'d1': 0.0, 'd2': 0.0}}
    """

    def list_scores(
        self,
        queries: Mapping[str, str],
        candidates: Mapping[str, Sequence[str]],
        documents: Mapping[str, str],
    ) -> ListScores:
        """Scores candidates; see `ListScorer.list_scores`."""
        return {q: dict.fromkeys(ids, 0.0) for q, ids in candidates.items()}


class DocumentOrder(ListScorer):
    """Keeps the order of the input, as a stable sort by one score would.

    Where answers are listed in the order of the text that they come from,
    this order is better than that of many a model. A model whose measures
    are exactly those of this order has given all documents one score.

    Example:
    >>> candidates, titles = {"q": ["d1", "d2"]}, {"d1": "bolt", "d2": "nut"}
    >>> list(DocumentOrder().rerank({"q": "nut"}, candidates, titles)["q"])
    ['d1', 'd2']
    """

    def list_scores(
        self,
        queries: Mapping[str, str],
        candidates: Mapping[str, Sequence[str]],
        documents: Mapping[str, str],
    ) -> ListScores:
        """Scores candidates; see `ListScorer.list_scores`."""
        return {
            query_id: {d: -float(rank) for rank, d in enumerate(ids)}
            for query_id, ids in candidates.items()
        }


def list_measures(
    scores: ListScores, qrels: Qrels, min_relevant: int = 1
) -> QueryMeasures:
    """Computes the measures of each query, in expectation over ties.

    `measures.evaluate_queries` measures a `Run`, in which ties have been
    broken. This function takes the scores themselves.

    Args:
        scores: Query id -> document id -> score; a query that is missing
            gets 0.
        qrels: Query id -> document id -> grade; other documents have 0.
        min_relevant: Grade from which a document counts as relevant.

    Returns:
        Query id -> measure -> value, for the queries with a relevant
        document; the measures are `LIST_MEASURES`.

    Raises:
        ValueError: A score is NaN or infinite.
        InputError: See `measures.evaluate`.

    Example:
    >>> list_measures({"q": {"a": 1.0, "b": 1.0}}, {"q": {"a": 1}})["q"]["mrr"]
    0.75
    """
    values: QueryMeasures = {}
    for query_id, judged in with_relevant(qrels, min_relevant).items():
        of_query = scores.get(query_id)
        if not of_query:
            values[query_id] = dict.fromkeys(LIST_MEASURES, 0.0)
            continue
        if not np.isfinite(list(of_query.values())).all():
            raise ValueError(f"query {query_id}: a score is not finite")
        expected = expected_measures(
            tie_groups(of_query, judged), judged.values(), min_relevant
        )
        values[query_id] = {name: expected[name] for name in LIST_MEASURES}
    return values


def evaluate_lists(
    task: Task, systems: Mapping[str, ListScorer]
) -> dict[str, QueryMeasures]:
    """Measures systems, random order and document order on judged lists.

    Args:
        task: The queries and their judged documents, of mode `"rerank"`.
        systems: Name -> system.

    Returns:
        Name -> query id -> measure -> value from 0 to 1, with `"random"` and
        `"document order"` as the last.

    Example:
    >>> task = Task.from_collection(collection, "test")
    >>> systems = {"bm25": BM25System(), "mine": PairSystem(model.score_pairs)}
    >>> for name, queries in evaluate_lists(task, systems).items():
    ...     print(name, mean_of_lists(queries)["p@1"])
    """
    candidates = {q: list(judged) for q, judged in task.qrels.items()}
    references: dict[str, ListScorer] = {
        RANDOM_ORDER: ConstantScorer(),
        DOCUMENT_ORDER: DocumentOrder(),
    }
    return {
        name: list_measures(
            system.list_scores(task.queries, candidates, task.documents),
            task.qrels,
            task.min_relevant,
        )
        for name, system in {**systems, **references}.items()
    }


def mean_of_lists(values: QueryMeasures) -> dict[str, float]:
    """Averages each of `LIST_MEASURES` over the queries.

    Example:
    >>> scores, qrels = {"q": {"d1": 2.0, "d2": 1.0}}, {"q": {"d1": 1, "d2": 0}}
    >>> mean_of_lists(list_measures(scores, qrels))["p@1"]
    1.0
    """
    return mean(values, LIST_MEASURES)


class ListTask(Task):
    """A task of judged lists, measured in expectation over ties.

    Its measures are `LIST_MEASURES`, and a system is a `ListScorer`: it must
    give scores. A system that gives all documents one score has the measures
    of random order, while a `Task` breaks its ties by a hash.

    Example:
    >>> task = ListTask.from_collection(collection, "test")
    >>> run, by_query = task.measure(PairSystem(model.score_pairs))
    >>> mean_of_lists(by_query)["p@1"]
    0.61
    """

    __slots__ = ()

    @property
    def measures(self) -> tuple[str, ...]:
        """The names of the measures."""
        return LIST_MEASURES

    def measure(self, system: ListScorer) -> tuple[Run, QueryMeasures]:
        """Returns the run of a system, and the measures of each query.

        The measures are those of the scores themselves; in the run, ties are
        broken (see `Ranker`).
        """
        candidates = {q: list(judged) for q, judged in self.qrels.items()}
        scores = system.list_scores(self.queries, candidates, self.documents)
        by_query = list_measures(scores, self.qrels, self.min_relevant)
        return rank_lists(scores), by_query

    def random_queries(self) -> QueryMeasures:
        """Returns the expected measures of random order for each query."""
        return self.measure(ConstantScorer())[1]
