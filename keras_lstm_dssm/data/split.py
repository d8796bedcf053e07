"""Division of queries and texts into train, dev and test without leaks."""

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from keras_lstm_dssm.data.collection import Collection
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.text.word_hashing import normalize


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


WORDS = "alphanumeric"
"""How words are separated: queries with equal words are in one split."""


def check_not_trained(collection: Collection, trained: Iterable[str]) -> None:
    """Checks that no dev query of a collection is a training query.

    Raises:
        InputError: Some are, in any spelling with the same words.
    """
    known = set(normalize(trained, WORDS))
    dev = [collection.queries[key] for key in collection.qrels("dev")]
    words = normalize(dev, WORDS)
    both = [q for q, w in zip(dev, words, strict=True) if w in known]
    if both:
        raise InputError(
            f"{collection.folder}: found {len(both):,} of its {len(dev):,} dev"
            f" queries in the training clicks, such as {both[0]!r:.60},"
            " expected none: train on this folder, or make both by one"
            " lstm-dssm-prepare"
        )


def splits_of(
    queries: Sequence[str],
    dev_percent: int,
    test_percent: int,
    split: str = WORDS,
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


def percent_of(words: str, seed: int = 0) -> int:
    """Returns a number from 0 to 99, a hash of a query's words and the seed."""
    text = f"{seed} {words}" if seed else words
    return int.from_bytes(_hash(text)[:8], "big") % 100
