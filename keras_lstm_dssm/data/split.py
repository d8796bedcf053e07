"""Splits queries and texts into train, dev and test that share no text."""

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from keras_lstm_dssm.data.collection import Collection
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.text.word_hashing import normalize


def first_linked(count: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """Returns, for each item, the smallest item of its connected component.

    The items are 0 to `count` - 1. Each of `pairs` connects two items.
    """
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
    """Assigns each item to "train" or to a split that `shares` names.

    Each item has a Python module, texts, and a key (a string). Items of one
    module get the same split, and so do items that have an equal or a nearly
    equal text. `shares` has the maximum share of the items for each split.
    """
    first_of_module: dict[str, int] = {}
    first_of_text: dict[str, int] = {}
    pairs = []
    for item, (module, item_texts) in enumerate(
        zip(modules, texts, strict=True)
    ):
        pairs.append((item, first_of_module.setdefault(module, item)))
        for text in item_texts:
            pairs.append((item, first_of_text.setdefault(text, item)))
    firsts = list(first_of_text.values())
    for later, earlier in near_duplicates(list(first_of_text)):
        pairs.append((firsts[later], firsts[earlier]))
    groups = first_linked(len(modules), pairs)
    sizes = Counter(groups)
    limits = {name: share * len(groups) for name, share in shares.items()}
    filled = dict.fromkeys(limits, 0)
    split_of_group = dict.fromkeys(sizes, "train")
    # The hashes of keys give a random order that is the same in each run.
    for group in sorted(sizes, key=lambda group: _hash(keys[group])):
        for split, limit in limits.items():
            # No group may fill more than a fifth of a split.
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
    """Yields (later, earlier) indices of texts with nearly the same words.

    The Jaccard index of the two sets of words is at least `share`.

    Source: Chaudhuri, Ganti and Kaushik 2006, "A Primitive Operator for
    Similarity Joins in Data Cleaning".
    """
    counts = Counter(word for text in texts for word in set(text.split()))
    texts_by_word: dict[str, list[int]] = {}
    sets: list[set[str]] = []
    for index, text in enumerate(texts):
        words = sorted(set(text.split()), key=lambda w: (counts[w], w))
        sets.append(set(words))
        # `prefix` has the rarest words of the text. If the Jaccard index of two
        # texts is at least `share`, the prefixes have a word in common.
        prefix = words[: len(words) - math.ceil(share * len(words)) + 1]
        for other_index in sorted(
            {o for w in prefix for o in texts_by_word.get(w, ())}
        ):
            common = len(sets[index] & sets[other_index])
            if common >= share * (
                len(sets[index]) + len(sets[other_index]) - common
            ):
                yield index, other_index
        for word in prefix:
            texts_by_word.setdefault(word, []).append(index)


WORD_RULE = "alphanumeric"
"""Default rule that divides a query into words (`normalize_texts`). The words
decide whether the query is in train, dev or test."""


def check_not_trained(collection: Collection, trained: Iterable[str]) -> None:
    """Raises `InputError` if a dev and a training query have equal words."""
    trained_words = set(normalize(trained, WORD_RULE))
    dev = [collection.queries[key] for key in collection.qrels("dev")]
    words = normalize(dev, WORD_RULE)
    shared = [q for q, w in zip(dev, words, strict=True) if w in trained_words]
    if shared:
        raise InputError(
            f"{collection.folder}: {len(shared):,} of {len(dev):,} dev queries,"
            f" such as {shared[0]!r:.60}, are also in the training clicks."
            " Train on the clicks of this folder, or make the clicks and the"
            " folder in one run of lstm-dssm-prepare"
        )


def splits_of(
    queries: Sequence[str],
    dev_percent: int,
    test_percent: int,
    word_rule: str = WORD_RULE,
) -> list[str]:
    """Returns "train", "dev" or "test" for each query, from its words only."""
    splits = []
    for words in normalize(queries, word_rule):
        percent = percent_of(words)
        if percent < test_percent:
            splits.append("test")
        elif percent < test_percent + dev_percent:
            splits.append("dev")
        else:
            splits.append("train")
    return splits


def percent_of(words: str, seed: int = 0) -> int:
    """Hashes a query's words and a seed to a number from 0 to 99."""
    text = f"{seed} {words}" if seed else words
    return int.from_bytes(_hash(text)[:8], "big") % 100
