"""Splits click logs into training, dev and test; grades documents by clicks."""

import hashlib
import itertools
import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from keras_lstm_dssm.data.beir import Collection
from keras_lstm_dssm.data.click_lines import Pair
from keras_lstm_dssm.data.click_log import ClickLog
from keras_lstm_dssm.data.collection_writer import write_collection
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.text import normalize

MAX_GRADE = 4
_CLICKS_AT_ONCE = 8192


def splits_of(
    queries: Sequence[str],
    dev_percent: int,
    test_percent: int,
    split: str = "alphanumeric",
) -> list[str]:
    """Returns "train", "dev" or "test" for each query.

    The split depends on the words of the query alone, not on the process or
    on other queries, so that no query changes its split when a log grows.
    Queries that differ in letter case, white space or (by default) in
    punctuation only, which an encoder may not distinguish, are in the same
    split.

    Args:
        queries: Texts of the queries.
        dev_percent: Percentage of queries for dev.
        test_percent: Percentage of queries for test.
        split: The rule by which words are separated, see `normalize_texts`;
            with `"space"`, punctuation is a part of the words.

    Example:
    >>> splits_of(["Sort a list", "a b c  D", "a, b: c-d!"], 3, 9)
    ['train', 'test', 'test']
    """
    splits = []
    for words in normalize(queries, split):
        digest = hashlib.sha256(words.encode()).digest()
        percent = int.from_bytes(digest[:8], "big") % 100
        if percent < test_percent:
            splits.append("test")
        elif percent < test_percent + dev_percent:
            splits.append("dev")
        else:
            splits.append("train")
    return splits


def split_log(
    log: ClickLog,
    folder: str | os.PathLike[str],
    dev_percent: int = 5,
    test_percent: int = 10,
) -> Collection:
    """Splits a click log of any size by query, into a new BEIR folder.

    The corpus holds each clicked title once. The dev and test queries are
    judged: the grade of a title is 4 to 1 by its share of the query's clicks
    (see `click_grades`). The clicks of all other queries are streamed to
    `clicks.train.tsv.gz`; only titles and held-out queries are held in
    memory. Held-out queries that differ in letter case, white space or
    Unicode's compatible forms (NFKC) only are one query. White space becomes
    single spaces; a click with an empty query or title is left out.

    Args:
        log: The click log, which is read twice.
        folder: The folder to create.
        dev_percent: Percentage of queries for dev, default 5.
        test_percent: Percentage of queries for test, default 10.

    Raises:
        InputError: `folder` exists, the percentages leave nothing to train
            on, a line of the log is wrong, or a split gets no query.

    Example:
        >>> collection = split_log(
        ...     ClickLog("clicks.tsv.gz"), "build/clicks"
        ... )  # doctest: +SKIP
        >>> collection.splits  # doctest: +SKIP
        ('dev', 'test')
    """
    percents = {"dev": dev_percent, "test": test_percent}
    if min(percents.values()) < 0 or not 0 < sum(percents.values()) < 100:
        raise InputError(
            f"found {dev_percent} % for dev and {test_percent} % for test,"
            " expected 0 or more each, and a sum of 1 to 99"
        )
    if os.path.lexists(folder):
        raise InputError(
            f"{os.fspath(folder)}: is already there, expected a new folder:"
            " name another, or remove it"
        )
    document_ids: dict[str, str] = {}
    queries: dict[str, _JudgedQuery] = {}  # by their normalised words
    has_training = False
    for click in _split_clicks(log, percents):
        document_id = document_ids.setdefault(
            click.title, f"d{len(document_ids) + 1}"
        )
        if click.split == "train":
            has_training = True
        else:
            judged = _JudgedQuery(
                f"q{len(queries) + 1}", click.query, click.split, Counter()
            )
            judged = queries.setdefault(click.words, judged)
            judged.clicks[document_id] += 1
    qrels = {
        split: {
            judged.id: click_grades(judged.clicks)
            for judged in queries.values()
            if judged.split == split
        }
        for split in percents
        if percents[split]
    }
    for split, has_queries in {"train": has_training, **qrels}.items():
        if not has_queries:
            raise InputError(
                f"{log.paths[0]}: found no query for the split {split},"
                " expected one or more: give more clicks or other percentages"
            )
    return write_collection(
        folder,
        {document_id: title for title, document_id in document_ids.items()},
        {judged.id: judged.text for judged in queries.values()},
        qrels,
        (
            Pair(click.query, click.title)
            for click in _split_clicks(log, percents)
            if click.split == "train"
        ),
    )


def click_grades(clicks: Mapping[str, int]) -> dict[str, int]:
    """Grades the documents of one query by their clicks.

    NDCG has the gain 2^grade - 1, so a number of clicks must not be used as
    a grade: a document with 30 clicks would count a thousand times as much
    as one with 20. The grade here is the one whose gain, of at most 15, is
    nearest (in its logarithm) to the share of the clicks:

        grade = round(log2(1 + 15 * clicks / most clicks of the query))

    and at least 1 for a document that was clicked. So a document gets grade
    4 from 69 % of the clicks of the query's most clicked document, 3 from
    31 %, 2 from 12 %, 1 below; and 0 without clicks. NDCG is computed query
    by query, so the grades need not be comparable between queries.

    Args:
        clicks: Document id -> number of clicks for the query.

    Returns:
        Document id -> grade, in the same order.

    Example:
    >>> click_grades({"d1": 30, "d2": 20, "d3": 10, "d4": 1, "d5": 0})
    {'d1': 4, 'd2': 3, 'd3': 3, 'd4': 1, 'd5': 0}
    """
    most = max(clicks.values(), default=0)
    return {
        document: max(
            1, round(math.log2(1 + (2**MAX_GRADE - 1) * count / most))
        )
        if count > 0
        else 0
        for document, count in clicks.items()
    }


class _JudgedQuery(NamedTuple):
    """Holds a held-out query, as first written, and its clicks by title."""

    id: str
    text: str
    split: str
    clicks: Counter[str]


class _SplitClick(NamedTuple):
    """Holds a click, its query's split and the query's normalised words."""

    query: str
    title: str
    split: str
    words: str


def _split_clicks(
    log: ClickLog, percents: dict[str, int]
) -> Iterator[_SplitClick]:
    pairs = iter(log)
    while block := list(itertools.islice(pairs, _CLICKS_AT_ONCE)):
        cleaned = [[" ".join(text.split()) for text in pair] for pair in block]
        cleaned = [pair for pair in cleaned if all(pair)]
        queries = [query for query, _ in cleaned]
        splits = splits_of(queries, percents["dev"], percents["test"])
        for (query, title), split, words in zip(
            cleaned, splits, normalize(queries), strict=True
        ):
            yield _SplitClick(query, title, split, words)
