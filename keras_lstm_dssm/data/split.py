"""Division of click logs and texts into train, dev and test without leaks."""

import hashlib
import itertools
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import NamedTuple, TypeVar

import numpy as np

from keras_lstm_dssm.data.click_log import ClickLog, weight_of
from keras_lstm_dssm.data.click_pages import ClickPages, Page
from keras_lstm_dssm.data.collection import Collection, write_collection
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.measures import MAX_GRADE, click_grades
from keras_lstm_dssm.text.word_hashing import normalize
from keras_lstm_dssm.text_files import one_line

_T = TypeVar("_T")


def joined(count: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """Returns the smallest item of each item's group, given pairs of items."""
    from scipy.sparse import coo_array, csgraph

    edges = np.array(list(pairs), np.int64).reshape(-1, 2).T
    graph = coo_array((np.ones(edges.shape[1]), tuple(edges)), (count, count))
    labels = csgraph.connected_components(graph, directed=False)[1]
    _, first, group = np.unique(labels, return_index=True, return_inverse=True)
    smallest: list[int] = first[group].tolist()
    return smallest


def split_by_groups(
    modules: Sequence[str],
    texts: Sequence[Iterable[str]],
    keys: Sequence[str],
    shares: Mapping[str, float],
) -> list[str]:
    """Assigns items to train and held-out splits without texts in common.

    Items of one module, or with a text in common or nearly so (see
    `near_duplicates`), form a group. The splits are filled, up to their shares
    of the items, with groups in the order of a hash of the first item's key. A
    group that would fill more than a fifth of a split is put into "train", so
    that one group cannot dominate dev or test.
    """
    first_of_module: dict[str, int] = {}
    first_of_text: dict[str, int] = {}
    pairs = []
    for item, (module, of_item) in enumerate(zip(modules, texts, strict=True)):
        pairs.append((item, first_of_module.setdefault(module, item)))
        for text in of_item:
            pairs.append((item, first_of_text.setdefault(text, item)))
    firsts = list(first_of_text.values())
    for later, earlier in near_duplicates(list(first_of_text)):
        pairs.append((firsts[later], firsts[earlier]))
    groups = joined(len(modules), pairs)
    sizes = Counter(groups)
    limits = {name: share * len(groups) for name, share in shares.items()}
    filled = dict.fromkeys(limits, 0)
    split_of_group = dict.fromkeys(sizes, "train")
    for group in sorted(sizes, key=lambda group: _hash(keys[group])):
        for split, limit in limits.items():
            if sizes[group] <= min(limit / 5, limit - filled[split]):
                split_of_group[group] = split
                filled[split] += sizes[group]
                break
    return [split_of_group[group] for group in groups]


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def near_duplicates(
    texts: Sequence[str], share: float = 0.75
) -> Iterator[tuple[int, int]]:
    """Yields positions of texts with nearly the same words, the earlier second.

    The words in both texts are at least `share` of the words in either (the
    Jaccard index of their sets of words).

    Source: Chaudhuri, Ganti and Kaushik 2006, "A Primitive Operator for
    Similarity Joins in Data Cleaning", for the prefixes: two sets that are near
    have one of their rarest words in common.
    """
    counts = Counter(word for text in texts for word in set(text.split()))
    by_word: dict[str, list[int]] = {}
    sets: list[set[str]] = []
    for number, text in enumerate(texts):
        words = sorted(set(text.split()), key=lambda w: (counts[w], w))
        sets.append(set(words))
        prefix = words[: len(words) - math.ceil(share * len(words)) + 1]
        for other in sorted({o for w in prefix for o in by_word.get(w, ())}):
            both = len(sets[number] & sets[other])
            if both >= share * (len(sets[number]) + len(sets[other]) - both):
                yield number, other
        for word in prefix:
            by_word.setdefault(word, []).append(number)


_ITEMS_AT_ONCE = 8192


def splits_of(
    queries: Sequence[str],
    dev_percent: int,
    test_percent: int,
    split: str = "alphanumeric",
) -> list[str]:
    """Returns "train", "dev" or "test" for each query.

    The split depends on the words of the query alone, so that no query changes
    its split when a log grows. Queries that differ in letter case, white space
    or (by default) in punctuation only are in the same split; `split` is the
    rule by which words are separated, see `normalize_texts`.
    """
    splits = []
    for words in normalize(queries, split):
        percent = percent_of(words)
        if percent < test_percent:
            splits.append("test")
        elif percent < test_percent + dev_percent:
            splits.append("dev")
        else:
            splits.append("train")
    return splits


def percent_of(words: str) -> int:
    """Returns a number from 0 to 99, a hash of a query's words."""
    return int.from_bytes(_hash(words)[:8], "big") % 100


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
    `clicks.train.tsv.gz`; only titles and held-out queries are held in memory.
    Held-out queries with the same normalised words, which white space
    separates, are one query. A click with an empty query or
    title is left out.
    """
    percents = {"dev": dev_percent, "test": test_percent}
    _check(folder, percents)
    document_ids: dict[str, str] = {}
    queries: dict[str, _JudgedQuery] = {}  # by their normalised words
    has_training = False

    def clicks() -> Iterator[tuple[tuple[str, str, float], str, str]]:
        return _with_splits(_clean_clicks(log), itemgetter(0), percents)

    for (query, title, weight), split, words in clicks():
        document_id = document_ids.setdefault(
            title, f"d{len(document_ids) + 1}"
        )
        if split == "train":
            has_training = True
            continue
        judged = queries.setdefault(
            words, _JudgedQuery(f"q{len(queries) + 1}", query, split, {})
        )
        before = judged.clicks.get(document_id, 0)
        judged.clicks[document_id] = before + weight
    return _write(
        log.paths[0],
        folder,
        document_ids,
        queries.values(),
        {split: click_grades for split in percents if percents[split]},
        has_training,
        (click for click, split, _ in clicks() if split == "train"),
    )


def _check(
    folder: str | os.PathLike[str], percents: Mapping[str, int], least: int = 1
) -> None:
    """Checks the percentages, and that the folder is new."""
    if min(percents.values()) < 0 or not least <= sum(percents.values()) < 100:
        found = " and ".join(
            f"{n} % for {name}" for name, n in percents.items()
        )
        raise InputError(
            f"found {found}, expected 0 or more each, and a sum of {least} to"
            " 99"
        )
    if os.path.lexists(folder):
        raise InputError(
            f"{os.fspath(folder)}: is already there, expected a new folder:"
            " name another, or remove it"
        )


class _JudgedQuery(NamedTuple):
    """Holds a held-out query, as first written, and its clicks by title.

    Of pages, it is clicks over expected clicks.
    """

    id: str
    text: str
    split: str
    clicks: dict[str, float]


def _write(
    name: str,
    folder: str | os.PathLike[str],
    document_ids: Mapping[str, str],
    queries: Iterable[_JudgedQuery],
    grades: Mapping[str, Callable[[Mapping[str, float]], dict[str, int]]],
    has_training: bool,
    clicks: Iterable[tuple[str, str, float]],
) -> Collection:
    """Writes the folder; `grades` are made by a function for each split."""
    queries = list(queries)
    qrels = {
        split: {
            judged.id: grade(judged.clicks)
            for judged in queries
            if judged.split == split
        }
        for split, grade in grades.items()
    }
    for split, has_queries in {"train": has_training, **qrels}.items():
        if not has_queries:
            raise InputError(
                f"{name}: found no query for the split {split},"
                " expected one or more: give more clicks or other percentages"
            )
    return write_collection(
        folder,
        {document_id: title for title, document_id in document_ids.items()},
        {judged.id: judged.text for judged in queries},
        qrels,
        clicks,
    )


def split_pages(
    pages: ClickPages,
    folder: str | os.PathLike[str],
    dev_percent: int = 5,
    test_percent: int = 10,
    test_after: float | None = None,
) -> Collection:
    """Splits pages of results by query or by time, into a new BEIR folder.

    By query, it is as by `split_log`. With `test_after`, seconds since 1970,
    the pages from then on are test, whatever their queries; those before are
    split by query into dev and train, and `test_percent` is not used.

    A title's grade is round(2 * clicks / expected clicks), at most 4: expected
    clicks are the sum, over the pages that showed it, of the share of clicks at
    its position in the whole log (COEC). So 2 is a title that is clicked as
    often as others at its positions. Of a client with an id, a query and a
    title count once, clicked if they were on any page.

    Source: Zhang and Jones 2007, "Comparing Click Logs and Editorial Labels for
    Training Query Rewriting", for clicks over expected clicks.
    """
    by_time = test_after is not None
    percents = {"dev": dev_percent, "test": 1 if by_time else test_percent}
    if by_time:
        _check(folder, {"dev": dev_percent}, least=0)
    else:
        _check(folder, percents)
    shown, clicked = Counter[int](), Counter[int]()
    for page in pages:
        shown.update(page.positions)
        clicked.update(itertools.compress(page.positions, page.weights))
    document_ids: dict[str, str] = {}
    queries: dict[tuple[str, str], _JudgedQuery] = {}
    sums: dict[tuple[str, str], list[float]] = {}
    counted: dict[tuple[str, str, str], bool] = {}
    has_training = False
    for page, split, words in _split_of_pages(pages, percents, test_after):
        has_training |= split == "train" and any(page.weights)
        for title, weight, position in zip(
            page.titles, page.weights, page.positions, strict=True
        ):
            document_id = document_ids.setdefault(
                title, f"d{len(document_ids) + 1}"
            )
            if split == "train":
                continue
            judged = queries.setdefault(
                (split, words),
                _JudgedQuery(f"q{len(queries) + 1}", page.query, split, {}),
            )
            both = sums.setdefault((judged.id, document_id), [0.0, 0.0])
            key = (page.client, judged.id, document_id)
            before = counted.get(key) if page.client else None
            if before is None:
                both[1] += clicked[position] / shown[position]
            both[0] += bool(weight) and not before
            if page.client:
                counted[key] = bool(weight or before)
    by_id = {judged.id: judged for judged in queries.values()}
    for (query_id, document_id), (clicks, expected) in sums.items():
        coec = clicks / expected if expected else 0.0
        by_id[query_id].clicks[document_id] = coec
    return _write(
        pages.spec,
        folder,
        document_ids,
        [
            judged
            for judged in queries.values()
            if any(_coec_grades(judged.clicks).values())
        ],
        {split: _coec_grades for split in percents if percents[split]},
        has_training,
        (
            (page.query, title, weight)
            for page, split, _ in _split_of_pages(pages, percents, test_after)
            if split == "train"
            for title, weight in zip(page.titles, page.weights, strict=True)
            if weight
        ),
    )


def _coec_grades(coec: Mapping[str, float]) -> dict[str, int]:
    """Grades titles by clicks over expected clicks: 2 as expected."""
    return {
        key: min(MAX_GRADE, math.floor(2 * value + 0.5))
        for key, value in coec.items()
    }


def _split_of_pages(
    pages: Iterable[Page],
    percents: Mapping[str, int],
    test_after: float | None,
) -> Iterator[tuple[Page, str, str]]:
    """Yields each page, its split and the normalised words of its query."""
    if test_after is not None:
        percents = {**percents, "test": 0}
    for page, split, words in _with_splits(
        pages, attrgetter("query"), percents
    ):
        if test_after is not None:
            if page.time is None:
                raise InputError(
                    f"query {page.query!r:.60}: found no timestamp, which"
                    " --test_after needs: split by query, without it"
                )
            split = "test" if page.time >= test_after else split
        yield page, split, words


def _clean_clicks(log: ClickLog) -> Iterator[tuple[str, str, float]]:
    """Yields query, title and weight of the clicks that have both texts."""
    for pair, line in log.lines():
        query, title = map(one_line, pair)
        if query and title:
            yield query, title, weight_of(line)


def _with_splits(
    items: Iterable[_T],
    query_of: Callable[[_T], str],
    percents: Mapping[str, int],
) -> Iterator[tuple[_T, str, str]]:
    """Yields each item, its query's split and the query's normalised words."""
    stream = iter(items)
    while block := list(itertools.islice(stream, _ITEMS_AT_ONCE)):
        queries = list(map(query_of, block))
        splits = splits_of(queries, percents["dev"], percents["test"])
        yield from zip(block, splits, normalize(queries), strict=True)
