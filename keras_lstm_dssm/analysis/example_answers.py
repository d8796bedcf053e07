"""Queries with a right and a wrong answer, for the report of a pair scorer."""

import os
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from keras_lstm_dssm.data import (
    JudgedList,
    is_collection,
    judged_lists,
    open_collection,
    open_log,
)
from keras_lstm_dssm.data.bm25_neighbours import bm25_neighbours
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.models import PairScorer
from keras_lstm_dssm.text import normalize

_CLICKS = 60_000
_NEIGHBOURS = 4


class ExampleAnswers(NamedTuple):
    """A query with a right and a wrong answer.

    Attributes:
        query: The query.
        right: A relevant document.
        wrong: Of the documents that are not, the one with the highest score.
    """

    query: str
    right: str
    wrong: str


def example_answers(
    scorer: PairScorer,
    data: str,
    count: int = 3,
    min_relevant: int = 1,
    max_bad_lines: int = 0,
) -> list[ExampleAnswers]:
    """Draw queries of a data set, the same ones for every scorer.

    The queries are those of the last split of a collection, which is its
    test split if there is one, or of a click log. Wrong answers are the
    query's documents that are judged not relevant; where there are none, the
    nearest titles by BM25.

    Args:
        scorer: Chooses the wrong answer with the highest score.
        data: "api", "api_sentences", a BEIR folder or click files.
        count: The number of queries.
        min_relevant: Grade from which a document is a right answer.
        max_bad_lines: Largest number of bad lines of click files to skip.

    Raises:
        InputError: The data are wrong, or no query has both answers.
    """
    lists, titles = _lists(data, min_relevant, max_bad_lines)
    order = np.random.default_rng(0).permutation(len(lists))
    drawn = _with_negatives((lists[row] for row in order), titles)
    examples = []
    for query, positives, negatives in islice(drawn, count):
        scores = scorer.score(query, negatives)
        wrong = negatives[int(np.argmax(scores))]
        examples.append(ExampleAnswers(query, positives[0], wrong))
    if not examples:
        raise InputError(
            f"{data}: found no query with a right and a wrong answer: name "
            "other --data"
        )
    return examples


def _lists(
    data: str, min_relevant: int, max_bad_lines: int
) -> tuple[list[JudgedList], list[str]]:
    """Return the lists with a positive, and all titles."""
    if is_collection(data):
        collection = open_collection(data)
        lists = judged_lists(collection, collection.splits[-1], min_relevant)
        titles = list(collection.documents.values())
    else:
        log = open_log(os.fspath(data), max_bad_lines=max_bad_lines)
        clicked: dict[str, list[str]] = {}
        for query, title in islice(log, _CLICKS):
            clicked.setdefault(query, []).append(title)
        lists = (JudgedList(query, c, []) for query, c in clicked.items())
        titles = [title for one in clicked.values() for title in one]
    return [one for one in lists if one.positives], list(dict.fromkeys(titles))


def _with_negatives(
    lists: Iterator[JudgedList], titles: list[str]
) -> Iterator[JudgedList]:
    """Yield the lists with negatives, judged or nearest by BM25."""
    for one in lists:
        negatives = one.negatives
        if not negatives:
            depth = _NEIGHBOURS + len(one.positives)
            (rows,) = bm25_neighbours([one.query], titles, depth)
            near = [titles[row] for row in rows]
            right = set(normalize(one.positives, "alphanumeric"))
            words = normalize(near, "alphanumeric")
            negatives = [
                title
                for title, of_title in zip(near, words, strict=True)
                if of_title not in right
            ]
        if negatives:
            yield one._replace(negatives=negatives)
