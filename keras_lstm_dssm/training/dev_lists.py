"""DevLists: measures scores of the judged titles of dev."""

import numpy as np

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import Run, Task, evaluate
from keras_lstm_dssm.evaluation.ranking import rank_lists


class DevLists:
    """Measures scores of the judged titles of dev.

    Args:
        task: Lists to rerank.
        measure: The measure that decides, such as `"ndcg@3"`.

    Attributes:
        task: The argument.
        measure: The argument.

    Raises:
        InputError: The task has no such measure.
    """

    def __init__(self, task: Task, measure: str) -> None:
        if measure not in task.measures:
            raise InputError(
                f"select is {measure!r}: expected one of"
                f" {', '.join(task.measures)}"
            )
        self.task = task
        self.measure = measure
        self._lists = {query: list(task.qrels[query]) for query in task.queries}

    def pairs(self) -> tuple[list[str], list[str]]:
        """Returns the queries and titles of all pairs, list after list."""
        pairs = [(q, d) for q, judged in self._lists.items() for d in judged]
        queries, documents = self.task.queries, self.task.documents
        return [queries[q] for q, _ in pairs], [documents[d] for _, d in pairs]

    @property
    def sizes(self) -> list[int]:
        """The number of titles of each query."""
        return [len(judged) for judged in self._lists.values()]

    @property
    def grades(self) -> np.ndarray:
        """The grade of each pair."""
        qrels = self.task.qrels
        return np.array(
            [qrels[q][d] for q, judged in self._lists.items() for d in judged]
        )

    def measures(self, scores: np.ndarray) -> dict[str, float]:
        """Returns all measures of scores, one for each pair."""
        return self.task.evaluate(self._run(scores))

    def __call__(self, scores: np.ndarray) -> float:
        """Returns the measure that decides."""
        values = evaluate(
            self._run(scores),
            self.task.qrels,
            self.task.min_relevant,
            [self.measure],
        )
        return values[self.measure]

    def _run(self, scores: np.ndarray) -> Run:
        numbers = iter(np.asarray(scores, np.float32).tolist())
        return rank_lists(
            {
                query: {document: next(numbers) for document in judged}
                for query, judged in self._lists.items()
            }
        )
