"""Sentence completion: a data set made from docstrings of installed packages.

The query is a sentence of a docstring, and the answer is the next sentence:
"Look at both ends" -> "Then swap the halves". There are about 25,500 queries.
Each query has a list of five sentences: the answer and four negatives.
"""

import itertools
import math
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from keras_lstm_dssm.data.api_search import building, cached_folder
from keras_lstm_dssm.data.api_sources import (
    distributions,
    documented,
    sentence_runs,
)
from keras_lstm_dssm.data.batches import permutation
from keras_lstm_dssm.data.click_log import Pair
from keras_lstm_dssm.data.collection import SPLITS, Collection, write_collection
from keras_lstm_dssm.data.split import split_by_groups
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.bm25 import bm25_neighbours
from keras_lstm_dssm.text.word_hashing import normalize

LISTS_FORMAT = 1  # increment when a change of this code changes the data
MIN_WORDS, MAX_WORDS = 5, 50
NEGATIVES = 4
HELD_OUT_SHARE = 0.1  # dev and test each have at most this share of queries
SEED = 0


def build_api_sentences(progress: bool = False) -> Collection:
    """Builds the lists of sentences, or opens them if they exist."""
    folder = cached_folder("api_sentences", distributions(), LISTS_FORMAT)
    with building(folder, "1 minute" if progress else "") as is_missing:
        if is_missing:
            docs = ((module, doc) for module, _, doc in documented())
            collection = write_lists(folder, adjacent_sentences(docs))
            if progress:
                print(collection.describe(), file=sys.stderr)
    return Collection(folder)


class SentencePair(NamedTuple):
    """Two adjacent sentences of a docstring: the query, then the answer."""

    query: str
    answer: str
    module: str


def adjacent_sentences(
    docs: Iterable[tuple[str, str]],
) -> Iterator[SentencePair]:
    """Yields pairs of adjacent sentences, each with 5 to 50 words."""
    seen: set[str] = set()
    for module, doc in docs:
        if doc in seen:
            continue
        seen.add(doc)
        for run in sentence_runs(doc):
            for query, answer in itertools.pairwise(run):
                sizes = len(query.split()), len(answer.split())
                if MIN_WORDS <= min(sizes) and max(sizes) <= MAX_WORDS:
                    yield SentencePair(query, answer, module)


def write_lists(
    folder: str | os.PathLike[str], pairs: Iterable[SentencePair]
) -> Collection:
    """Writes lists; raises `InputError` if a split has fewer than 6 answers."""
    lists, all_answers = _lists(pairs)
    splits = split_by_groups(
        [pair.module for _, pair in lists.values()],
        [(query, answer) for query, (answer, _) in lists.items()],
        list(lists),
        {"test": HELD_OUT_SHARE, "dev": HELD_OUT_SHARE},
    )
    return _write_drawn(folder, lists, all_answers, splits)


def redraw_lists(
    folder: str | os.PathLike[str], collection: Collection
) -> Collection:
    """Copies a collection, with 4 newly drawn negatives for each query.

    A query keeps its split and its first positive. All further positives of the
    query are left out.
    """
    # The field `module` of these pairs holds the name of the split.
    lists, all_answers = _lists(
        SentencePair(
            collection.queries[query], collection.documents[document], split
        )
        for split in collection.splits
        for query, scores in collection.qrels(split).items()
        for document, score in scores.items()
        if score > 0
    )
    splits = [pair.module for _, pair in lists.values()]
    return _write_drawn(folder, lists, all_answers, splits)


def _write_drawn(
    folder: str | os.PathLike[str],
    lists: Mapping[str, tuple[str, SentencePair]],
    all_answers: Mapping[str, Sequence[str]],
    splits: Sequence[str],
) -> Collection:
    """Writes lists; draws the negatives from the answers of the same split."""
    answer_texts: dict[str, str] = {}  # normalised answer -> first original
    for answer, pair in lists.values():
        answer_texts.setdefault(answer, pair.answer)
    rows = {words: row for row, words in enumerate(answer_texts)}
    texts = list(answer_texts.values())
    split_of_row = [""] * len(rows)
    for split, (answer, _) in zip(splits, lists.values(), strict=True):
        split_of_row[rows[answer]] = split
    sizes = Counter(split_of_row)
    for split in SPLITS:
        if sizes[split] < 2 + NEGATIVES:
            raise InputError(
                f"found {sizes[split]} answers for {split}, expected"
                f" {2 + NEGATIVES} or more: give more pairs"
            )
    # As in Wan et al. 2016, negatives are drawn from the k answers that are
    # nearest to the positive answer.
    k = max(50, min(1000, math.ceil(0.007 * len(texts))))
    # k + 1, because for each answer BM25 usually ranks the answer itself first.
    nearest = list(bm25_neighbours(texts, texts, k + 1))
    split_array = np.array(split_of_row)
    qrels: dict[str, dict[str, dict[str, int]]] = {s: {} for s in SPLITS}
    for number, (query, (answer, _)) in enumerate(lists.items()):
        positive = rows[answer]
        excluded = {
            rows[words]
            for words in (query, *all_answers[query])
            if words in rows
        }
        candidates = _drawable(texts, split_array, nearest, positive, excluded)
        drawn = permutation(len(candidates), SEED, number)[:NEGATIVES]
        list_rows = [positive, *(candidates[index] for index in drawn)]
        qrels[splits[number]][f"q{number + 1}"] = {
            f"d{list_rows[index] + 1}": int(index == 0)
            for index in permutation(len(list_rows), SEED, number, 1)
        }
    return write_collection(
        folder,
        {f"d{row + 1}": text for row, text in enumerate(texts)},
        {
            f"q{number}": pair.query
            for number, (_, pair) in enumerate(lists.values(), 1)
        },
        qrels,
        (
            Pair(pair.query, answer_texts[answer])
            for (answer, pair), split in zip(
                lists.values(), splits, strict=True
            )
            if split == "train"
        ),
    )


def _lists(
    pairs: Iterable[SentencePair],
) -> tuple[dict[str, tuple[str, SentencePair]], dict[str, list[str]]]:
    """Returns query -> (first answer, first pair), and query -> all answers.

    The queries and answers are normalised. A `SentencePair` keeps the original
    sentences. Pairs of two equal sentences are left out.
    """
    pairs = list(pairs)
    queries = normalize((pair.query for pair in pairs), "alphanumeric")
    answers = normalize((pair.answer for pair in pairs), "alphanumeric")
    lists: dict[str, tuple[str, SentencePair]] = {}
    all_answers: dict[str, list[str]] = {}
    for pair, query, answer in zip(pairs, queries, answers, strict=True):
        if query != answer:
            lists.setdefault(query, (answer, pair))
            all_answers.setdefault(query, []).append(answer)
    return lists, all_answers


def _drawable(
    texts: list[str],
    splits: np.ndarray,
    nearest: Sequence[np.ndarray],
    positive: int,
    excluded: set[int],
) -> list[int]:
    """Returns the rows in `texts` from which a list's negatives are drawn."""

    def allowed(rows: np.ndarray) -> list[int]:
        same_split = rows[splits[rows] == splits[positive]].tolist()
        return [row for row in same_split if row not in excluded]

    candidates = allowed(nearest[positive])
    if len(candidates) < NEGATIVES:
        (ranked,) = bm25_neighbours([texts[positive]], texts, len(texts))
        # `bm25_neighbours` leaves out answers that share no word with the
        # positive.
        unranked = np.setdiff1d(np.arange(len(texts)), ranked)
        candidates = allowed(np.concatenate([ranked, unranked]))[:NEGATIVES]
    return candidates
