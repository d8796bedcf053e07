"""Lists of titles with grades, for training rankers and measuring them."""

import os
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from keras_lstm_dssm.data.click_log import ClickLog
from keras_lstm_dssm.data.click_pages import Page
from keras_lstm_dssm.data.collection import Collection
from keras_lstm_dssm.data.sources import is_collection, open_collection
from keras_lstm_dssm.data.triples import clicked_lists
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.index import Index
from keras_lstm_dssm.evaluation.measures import (
    click_grades,
    evaluate_queries,
    mean,
)
from keras_lstm_dssm.evaluation.runs import Run, rank_lists
from keras_lstm_dssm.evaluation.task import Task
from keras_lstm_dssm.models.two_tower import TwoTower
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.settings.training import TrainingConfig
from keras_lstm_dssm.text.word_hashing import normalize
from keras_lstm_dssm.text_files import one_line
from keras_lstm_dssm.training.session import open_clicks


class GradedList(NamedTuple):
    """The titles of a query, with a grade for each; higher is better.

    Titles of a page of results also have their positions.
    """

    query: str
    titles: list[str]
    grades: list[int]
    positions: list[int] = []


def pairs_of(lists: Iterable[GradedList]) -> tuple[list[str], list[str]]:
    """Returns the queries and titles of all pairs, list after list."""
    pairs = [(one.query, title) for one in lists for title in one.titles]
    return [query for query, _ in pairs], [title for _, title in pairs]


def lists_of(task: Task) -> list[GradedList]:
    """Returns the judged titles of each query of a task."""
    return [
        GradedList(
            text,
            [task.documents[document] for document in task.qrels[query]],
            list(task.qrels[query].values()),
        )
        for query, text in task.queries.items()
    ]


def ranked(task: Task, scores: np.ndarray) -> Run:
    """Ranks the titles of `lists_of` by scores, one for each pair."""
    numbers = iter(np.asarray(scores, np.float32).tolist())
    return rank_lists(
        {
            query: {document: next(numbers) for document in task.qrels[query]}
            for query in task.queries
        }
    )


class JudgedPairs(NamedTuple):
    """The features and grades of pairs, one judged list after another."""

    features: np.ndarray  # float32 [pairs, features]
    grades: np.ndarray  # integers [pairs]
    sizes: list[int]  # the number of pairs of each list
    positions: list[int] | None = None  # on pages, of each pair
    # From a score for each pair to the metric that chooses trees, for dev.
    measure: Callable[[np.ndarray], float] | None = None

    @classmethod
    def from_lists(
        cls, lists: Sequence[GradedList], features: Callable[..., np.ndarray]
    ) -> "JudgedPairs":
        """Computes the features of lists by a function of their pairs."""
        return cls(
            features(*pairs_of(lists)),
            np.array([grade for one in lists for grade in one.grades]),
            [len(one.titles) for one in lists],
            [place for one in lists for place in one.positions] or None,
        )

    @classmethod
    def from_task(
        cls, task: Task, select: str, features: Callable[..., np.ndarray]
    ) -> "JudgedPairs":
        """Computes the features of dev, measured by the metric `select`."""

        def measure(scores: np.ndarray) -> float:
            run, least = ranked(task, scores), task.min_relevant
            by_query = evaluate_queries(run, task.qrels, least, [select])
            return mean(by_query)[select]

        return cls.from_lists(lists_of(task), features)._replace(
            measure=measure
        )

    def without(self, columns: Sequence[int]) -> "JudgedPairs":
        """Returns pairs with 0 in some columns, which trees then ignore."""
        features = self.features.copy()
        features[:, list(columns)] = 0
        return self._replace(features=features)


class GradedLists:
    """Holds lists of titles with grades, and all known titles.

    Lists whose grades are all equal say nothing about an order and are left
    out. `name` is what messages call the lists; grades are clicks if not
    `judged`.
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
        """Takes the grades of the training split, `Collection.graded_qrels`.

        Queries with the same normalised words as one of dev or test are left
        out.
        """
        queries, documents = collection.queries, collection.documents
        held_out = [
            queries[query]
            for split in collection.splits
            if split != "train"
            for query in collection.qrels(split)
        ]
        asked = set(normalize(held_out, "alphanumeric"))
        qrels = collection.graded_qrels("train")
        words = normalize([queries[query] for query in qrels], "alphanumeric")
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
        """Takes the clicks of a log, and `mined` titles a query of grade 0.

        For `index` and `seed` see `clicked_lists`.
        """
        lists = []
        for one in clicked_lists(log, mined, index, seed):
            clicks: dict[str, float] = {}
            for title, weight in zip(
                one.positives, one.weights or repeat(1), strict=False
            ):
                clicks[title] = clicks.get(title, 0) + weight
            grades = click_grades(clicks)
            grades.update(dict.fromkeys(one.negatives, 0))
            lists.append(GradedList(one.query, [*grades], [*grades.values()]))
        name = ", ".join(log.paths[:3])
        return cls(lists, dict.fromkeys(log.documents()), name, judged=False)

    @classmethod
    def from_pages(cls, pages: Iterable[Page], name: str) -> "GradedLists":
        """Makes a list to rank of each page of results with a click.

        Its titles have grades by the weights of their clicks, 0 without one,
        and the positions at which they were shown.
        """
        lists, titles = [], dict[str, None]()
        for page in pages:
            titles.update(dict.fromkeys(page.titles))
            if any(page.weights):
                clicks = dict(zip(page.titles, page.weights, strict=True))
                values = [*click_grades(clicks).values()], page.positions
                lists.append(GradedList(page.query, page.titles, *values))
        return cls(lists, titles, name, judged=False)

    def describe(self) -> str:
        """Describes the size of the lists."""
        pairs = sum(len(one.titles) for one in self.lists)
        return f"{pairs:,} titles of {len(self.lists):,} queries"


def open_graded_lists(
    config: TrainingConfig,
    run: RunFolder,
    towers: TwoTower | None = None,
) -> tuple[GradedLists, str]:
    """Opens the grades of a BEIR folder's training split, or else clicks.

    For each query of clicks, mined titles of grade 0 are found by towers, or
    by BM25. Returns the lists, and the specification that opens them again.
    """
    data = config.data
    if isinstance(data, str | os.PathLike) and is_collection(data):
        collection = open_collection(os.fspath(data))
        if "train" in collection.splits and any(
            len(set(judged.values())) > 1
            for judged in collection.qrels("train").values()
        ):
            return GradedLists.from_collection(collection), os.fspath(data)
    log, source = open_clicks(
        data, run, config.min_relevant, config.max_bad_lines
    )
    # White space as in the lists, whose titles are the ids.
    titles = map(one_line, log.documents())
    index = None if towers is None else Index(towers, titles)
    mined = config.recipe.mined_negatives
    lists = GradedLists.from_clicks(log, mined, index, config.seed)
    return lists, source.spec
