"""Training, dev and test by query: for click logs and for API search."""

import hashlib
import os
import unicodedata
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from keras_lstm_dssm.data.beir import Collection, write_collection
from keras_lstm_dssm.data.click_lines import Pair
from keras_lstm_dssm.data.click_log import ClickLog
from keras_lstm_dssm.errors import InputError


def split_of(query: str, dev_percent: int, test_percent: int) -> str:
    """Returns "train", "dev" or "test".

    It depends on the query's words alone, not on the process or the other
    queries, so no query changes its split when a log grows.

    >>> split_of("Sort a list", 3, 9), split_of("a b c  D", 3, 9)
    ('train', 'test')
    """
    digest = hashlib.sha256(_words(query).encode()).digest()
    percent = int.from_bytes(digest[:8], "big") % 100
    if percent < test_percent:
        return "test"
    return "dev" if percent < test_percent + dev_percent else "train"


def split_log(
    log: ClickLog,
    folder: str | os.PathLike[str],
    dev_percent: int = 5,
    test_percent: int = 10,
) -> Collection:
    """Splits a click log of any size by query, into a new BEIR folder.

    The corpus holds each clicked title once. The dev and test queries are
    judged: a title's grade is its number of clicks. The clicks of all other
    queries are streamed to `clicks.train.tsv.gz`; only titles and held-out
    queries are held in memory. Queries that differ only in letter case, white
    space or Unicode's compatible forms (NFKC), to which the model is blind,
    are one query. White space becomes single spaces; a click with nothing
    else on one side is left out.

    Args:
        log: The clicks; they are read twice.
        folder: Where to; nothing may be there.
        dev_percent: How many of 100 queries go to dev.
        test_percent: How many of 100 queries go to test.

    Raises:
        InputError: `folder` exists, percentages that leave no training, a
            wrong line in the log, or a split that gets no query.

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
    ids: dict[str, str] = {}
    queries: dict[str, _Judged] = {}  # by their words
    trained = False
    for query, title, split in _clicks(log, percents):
        key = ids.setdefault(title, f"d{len(ids) + 1}")
        if split == "train":
            trained = True
        else:
            judged = _Judged(f"q{len(queries) + 1}", query, split, Counter())
            queries.setdefault(_words(query), judged).clicks[key] += 1
    qrels = {
        split: {
            judged.id: judged.clicks
            for judged in queries.values()
            if judged.split == split
        }
        for split in percents
        if percents[split]
    }
    for split, found in {"train": trained, **qrels}.items():
        if not found:
            raise InputError(
                f"{log.paths[0]}: found too few queries, none of them fell to"
                f" {split}: give more clicks or other percentages"
            )
    return write_collection(
        folder,
        {key: title for title, key in ids.items()},
        {judged.id: judged.text for judged in queries.values()},
        qrels,
        (
            Pair(query, title)
            for query, title, split in _clicks(log, percents)
            if split == "train"
        ),
    )


class _Judged(NamedTuple):
    """A held-out query, as it was first written, and its clicks by title."""

    id: str
    text: str
    split: str
    clicks: Counter[str]


def _words(query: str) -> str:
    """Equal where the model sees the same words (see `text.words`)."""
    return " ".join(unicodedata.normalize("NFKC", query).casefold().split())


def _clicks(
    log: ClickLog, percents: dict[str, int]
) -> Iterator[tuple[str, str, str]]:
    """Yields (query, title, split)."""
    for pair in log:
        query, title = (" ".join(text.split()) for text in pair)
        if query and title:
            yield query, title, split_of(query, *percents.values())
