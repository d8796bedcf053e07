"""Lists of a query, its positives and its negatives, to train pair scorers."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from keras_lstm_dssm.data.beir import Collection
from keras_lstm_dssm.data.bm25_neighbours import bm25_neighbours
from keras_lstm_dssm.data.click_log import ClickLog
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.text import normalize

_QUERIES_AT_ONCE = 1024


class JudgedList(NamedTuple):
    """Holds the texts that answer a query and some that do not.

    Attributes:
        query: The query's text.
        positives: Titles that answer it; one that is in the list twice
            counts twice.
        negatives: Titles that do not.

    Example:
    >>> JudgedList("hex bolt", ["steel hex bolt"], ["hex nut"]).negatives
    ['hex nut']
    """

    query: str
    positives: list[str]
    negatives: list[str]


def judged_lists(
    collection: Collection, split: str = "train", min_relevant: int = 1
) -> Iterator[JudgedList]:
    """Yields the judged documents of each query of a split.

    Args:
        collection: A collection whose qrels contain documents that are
            judged not relevant.
        split: Name of one of its splits.
        min_relevant: Grade from which a document is a positive; all others
            of the query's judged documents are negatives.

    Raises:
        InputError: See `Collection`.

    Example:
    >>> next(judged_lists(dssm.data.open_collection("parts"), "dev"))
    JudgedList(query='hex bolt', positives=['steel hex bolt'],
               negatives=['hex nut'])
    """
    queries, documents = collection.queries, collection.documents
    for query_id, grades in collection.qrels(split).items():
        titles: tuple[list[str], list[str]] = ([], [])
        for document_id, grade in grades.items():
            titles[grade >= min_relevant].append(_line(documents[document_id]))
        yield JudgedList(_line(queries[query_id]), titles[1], titles[0])


def only_negatives(lists: Iterable[JudgedList]) -> Iterator[JudgedList]:
    """Leaves out negatives that are positives of the same query, too.

    A collection may hold a title under two ids, or a query twice, which were
    judged differently. Texts with the same normalised words are one text, as
    in `clicked_lists`.

    Args:
        lists: Judged lists, held in memory.

    Yields:
        Each list, with the remaining negatives.

    Example:
    >>> both = JudgedList("bolt", ["hex bolt"], ["Hex-Bolt", "nut"])
    >>> next(only_negatives([both])).negatives
    ['nut']
    """
    lists = list(lists)
    texts = dict.fromkeys(
        text
        for one in lists
        for text in (one.query, *one.positives, *one.negatives)
    )
    words = dict(zip(texts, normalize(texts, "alphanumeric"), strict=True))
    positives: dict[str, set[str]] = {}
    for one in lists:
        of_query = positives.setdefault(words[one.query], set())
        of_query.update(words[title] for title in one.positives)
    for one in lists:
        of_query = positives[words[one.query]]
        remaining = [t for t in one.negatives if words[t] not in of_query]
        yield one._replace(negatives=remaining)


def clicked_lists(
    log: ClickLog, top: int = 4, index: Any = None, seed: int = 0
) -> Iterator[JudgedList]:
    """Yields the clicked titles of each query, and mined negatives.

    The negatives are the titles nearest to the query among all titles of the
    log, by BM25 or by a trained tower, that were never clicked for it. Where
    too few titles have a word of the query, others are drawn at random. No
    text comes from elsewhere than the log, so that a log of training clicks
    cannot bring in an answer of dev or test.

    Queries with the same normalised words are one query, and a title that
    differs from a clicked one in letter case or punctuation only is not a
    negative (see `normalize_texts`).

    Args:
        log: The click log; distinct texts are held in memory.
        top: The number of negatives for each query.
        index: `Index` of the titles of the log, made with a `TwoTower`,
            whose ids are the titles; by default BM25 is used.
        seed: Seed of the titles that are drawn at random.

    Yields:
        A list for each query, in order of first occurrence. A title that was
        clicked n times is n times among the positives.

    Raises:
        InputError: `top` is below 1, or a file of the log is wrong.

    Example:
        >>> next(clicked_lists(log, top=1))  # doctest: +SKIP
        JudgedList('hex bolt', ['steel hex bolt'], ['steel bolt cutter'])
    """
    if top < 1:
        raise InputError(f"top is {top}: expected 1 or more")
    pairs = [(_line(pair.query), _line(pair.document)) for pair in log]
    titles = list(dict.fromkeys(title for _, title in pairs))
    words_of_titles = normalize(titles, "alphanumeric")
    words = dict(zip(titles, words_of_titles, strict=True))
    texts: dict[str, str] = {}
    clicked: dict[str, list[str]] = {}
    queries = normalize((query for query, _ in pairs), "alphanumeric")
    for of_query, (query, title) in zip(queries, pairs, strict=True):
        texts.setdefault(of_query, query)
        clicked.setdefault(of_query, []).append(title)
    # Queries with about as many clicks are searched together: the search
    # must go as deep as the clicked titles may.
    order = sorted(clicked, key=lambda query: len(set(clicked[query])))
    negatives: dict[str, list[str]] = {}
    for start in range(0, len(order), _QUERIES_AT_ONCE):
        some = order[start : start + _QUERIES_AT_ONCE]
        depth = top + len(set(clicked[some[-1]]))
        searched = [texts[query] for query in some]
        for query, nearest in zip(
            some, _nearest(searched, titles, depth, index), strict=True
        ):
            taken = {words[title] for title in clicked[query]}
            at_random = _drawn(titles, 4 * depth, seed, len(negatives))
            mined: list[str] = []
            for title in (*nearest, *at_random):
                of_title = words.get(title, title)
                if len(mined) < top and of_title not in taken:
                    taken.add(of_title)
                    mined.append(title)
            negatives[query] = mined
    for query, text in texts.items():
        yield JudgedList(text, clicked[query], negatives[query])


def _nearest(
    queries: list[str], titles: list[str], depth: int, index: Any
) -> Iterator[list[str]]:
    """Yields the titles nearest to each query, nearest first."""
    if index is None:
        for rows in bm25_neighbours(queries, titles, depth):
            yield [titles[row] for row in rows]
    else:
        for hits in index.search(queries, depth):
            yield [hit.id for hit in hits]


def _drawn(titles: list[str], count: int, *seeds: int) -> list[str]:
    """Draws titles with repetition, the same in every version of NumPy."""
    bits = np.random.PCG64(list(seeds)).random_raw(count)
    return [titles[row] for row in bits % np.uint64(len(titles))]


def _line(text: str) -> str:
    """Reduces white space as in a line of a click file."""
    return " ".join(text.split())
