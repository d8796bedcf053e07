"""Division of click logs and texts into train, dev and test without leaks."""

import hashlib
import itertools
import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from keras_lstm_dssm.data.click_log import ClickLog, Pair
from keras_lstm_dssm.data.collection import Collection, write_collection
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.measures import click_grades
from keras_lstm_dssm.text.word_hashing import normalize
from keras_lstm_dssm.text_files import one_line


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


_CLICKS_AT_ONCE = 8192


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
        percent = int.from_bytes(_hash(words)[:8], "big") % 100
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
    `clicks.train.tsv.gz`; only titles and held-out queries are held in memory.
    Held-out queries that differ in letter case, white space or Unicode's
    compatible forms (NFKC) only are one query. A click with an empty query or
    title is left out.
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
        cleaned = [list(map(one_line, pair)) for pair in block]
        cleaned = [pair for pair in cleaned if all(pair)]
        queries = [query for query, _ in cleaned]
        splits = splits_of(queries, percents["dev"], percents["test"])
        for (query, title), split, words in zip(
            cleaned, splits, normalize(queries), strict=True
        ):
            yield _SplitClick(query, title, split, words)
