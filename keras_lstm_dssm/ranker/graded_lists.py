"""Lists of titles with grades, for training rankers and measuring them."""

import os
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from keras_lstm_dssm.data.click_log import ClickLog
from keras_lstm_dssm.data.collection import Collection
from keras_lstm_dssm.data.sources import is_collection, open_collection
from keras_lstm_dssm.data.triples import clicked_lists
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.measures import (
    click_grades,
    evaluate_queries,
    mean,
)
from keras_lstm_dssm.evaluation.runs import Run, rank_lists
from keras_lstm_dssm.evaluation.task import Task
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.text.word_hashing import normalize
from keras_lstm_dssm.training.config import DataOptions, open_clicks


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
        by_query = evaluate_queries(
            self._run(scores),
            self.task.qrels,
            self.task.min_relevant,
            [self.measure],
        )
        return mean(by_query)[self.measure]

    def _run(self, scores: np.ndarray) -> Run:
        numbers = iter(np.asarray(scores, np.float32).tolist())
        return rank_lists(
            {
                query: {document: next(numbers) for document in judged}
                for query, judged in self._lists.items()
            }
        )


class GradedList(NamedTuple):
    """The titles of a query.

    Attributes:
        query: The query's text.
        titles: Titles.
        grades: A grade for each of them; higher is better.
    """

    query: str
    titles: list[str]
    grades: list[int]


class GradedLists:
    """Holds lists of titles with grades, each for one query.

    Args:
        lists: The lists; one whose grades are all equal says nothing about
            an order, and is left out.
        titles: All known titles, for the statistics of words.
        name: What messages call the lists.
        judged: Whether people gave the grades; otherwise clicks are grades.

    Attributes:
        lists: The lists that are left.
        titles: The argument.
        judged: The argument.

    Raises:
        InputError: No list is left.

    Example:
    >>> lists = GradedLists([GradedList("hex", ["hex bolt", "glue"], [1, 0])])
    >>> len(lists.lists)
    1
    """

    def __init__(
        self,
        lists: Iterable[GradedList],
        titles: Iterable[str] = (),
        name: str = "the lists",
        judged: bool = True,
    ) -> None:
        found = list(lists)
        self.lists = [one for one in found if len(set(one.grades)) > 1]
        self.titles = list(titles) or list(
            dict.fromkeys(title for one in found for title in one.titles)
        )
        self.judged = judged
        if not self.lists:
            raise InputError(
                f"{name}: found no query with titles of two different grades"
                f" among {len(found):,}, expected some: add judged titles of"
                " both kinds, or name click files"
            )

    @classmethod
    def from_collection(cls, collection: Collection) -> "GradedLists":
        """Takes the grades of the training split.

        Queries with the same normalised words as one of dev or test are left
        out. Numbers of clicks become grades as in `Collection.graded_qrels`.

        Raises:
            InputError: See the class and `Collection`.
        """
        queries, documents = collection.queries, collection.documents
        held_out = {
            query
            for split in collection.splits
            if split != "train"
            for query in collection.qrels(split)
        }
        asked = set(_words([queries[query] for query in held_out]))
        qrels = collection.graded_qrels("train")
        words = _words([queries[query] for query in qrels])
        return cls(
            [
                GradedList(
                    queries[query],
                    [documents[document] for document in judged],
                    list(judged.values()),
                )
                for (query, judged), of_query in zip(
                    qrels.items(), words, strict=True
                )
                if of_query not in asked
            ],
            dict.fromkeys(documents.values()),
            f"{collection.folder}, split train",
        )

    @classmethod
    def from_clicks(
        cls, log: ClickLog, mined: int, index: Any = None, seed: int = 0
    ) -> "GradedLists":
        """Takes the clicks of a log, and mined titles of grade 0.

        Args:
            log: The click log.
            mined: Number of mined titles for each query.
            index: See `clicked_lists`.
            seed: See `clicked_lists`.

        Raises:
            InputError: See the class and `clicked_lists`.
        """
        lists = []
        for one in clicked_lists(log, mined, index, seed):
            grades = click_grades(Counter(one.positives))
            grades.update(dict.fromkeys(one.negatives, 0))
            lists.append(GradedList(one.query, [*grades], [*grades.values()]))
        name = ", ".join(log.paths[:3])
        return cls(lists, dict.fromkeys(log.documents()), name, judged=False)

    def pairs(self) -> tuple[list[str], list[str]]:
        """Returns the queries and titles of all pairs, list after list."""
        return (
            [one.query for one in self.lists for _ in one.titles],
            [title for one in self.lists for title in one.titles],
        )

    def describe(self) -> str:
        """Describes the size of the lists."""
        pairs = sum(len(one.titles) for one in self.lists)
        kind = "grades" if self.judged else "clicks"
        return f"{pairs:,} {kind} of {len(self.lists):,} queries"


def open_graded_lists(
    options: DataOptions,
    run: RunFolder,
    mined: int,
    index_of: Any = None,
    seed: int = 0,
) -> tuple[GradedLists, str]:
    """Opens grades or clicks.

    A folder whose training split has titles of different grades gives these;
    anything else is read as clicks, with mined titles of grade 0.

    Args:
        options: The data.
        run: The folder for clicks that are made from grades.
        mined: Number of mined titles for each query of clicks.
        index_of: Function from titles to the `Index` that finds the mined
            titles; by default BM25 is used.
        seed: Seed of mined titles that are drawn.

    Returns:
        The lists, and a specification from which they can be opened again.

    Raises:
        InputError: The data are missing or wrong.
    """
    data = options.data
    if isinstance(data, str | os.PathLike) and is_collection(data):
        collection = open_collection(os.fspath(data))
        if "train" in collection.splits and any(
            len(set(judged.values())) > 1
            for judged in collection.qrels("train").values()
        ):
            return GradedLists.from_collection(collection), os.fspath(data)
    log, spec = open_clicks(options, run)
    # White space as in the lists, whose titles are the ids.
    index = index_of and index_of(
        " ".join(title.split()) for title in log.documents()
    )
    return GradedLists.from_clicks(log, mined, index, seed), spec


def _words(queries: list[str]) -> list[str]:
    return normalize(queries, "alphanumeric")
