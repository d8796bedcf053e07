"""Sentence completion from docstrings: lists of five to train and test on.

The query is a sentence of a docstring; its answer is the next one: "Look at
both ends" -> "Then swap the halves". About 25,500 lists are made from the
packages that this one requires; the number depends on their versions.
"""

import itertools
import math
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from keras_lstm_dssm.data.api_prose import sentence_runs
from keras_lstm_dssm.data.api_search import fingerprint
from keras_lstm_dssm.data.api_sources import distributions, docstrings
from keras_lstm_dssm.data.batches import permutation
from keras_lstm_dssm.data.click_log import Pair
from keras_lstm_dssm.data.collection import (
    SPLITS,
    Collection,
    describe,
    write_collection,
)
from keras_lstm_dssm.data.split import Groups, near_duplicates
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.bm25 import bm25_neighbours
from keras_lstm_dssm.files import cache_folder
from keras_lstm_dssm.text.word_hashing import normalize

LISTS_FORMAT = 1  # increment when the same packages give other lists
MIN_WORDS, MAX_WORDS = 5, 50
NEGATIVES = 4
HELD_OUT_SHARE = 0.1  # of the lists, for dev and for test each
SEED = 0


def build_api_sentences(
    folder: str | os.PathLike[str] | None = None, progress: bool = False
) -> Collection:
    """Builds the lists of sentences, or opens them if they were built before.

    The docstrings are those that API search is made from, see
    `build_api_search`. Both sentences have 5 to 50 words; a sentence that is
    a query twice keeps its first answer.

    Each list has one positive and 4 negatives, in random order: the positive
    is the BM25 query over all answers, and 4 of the best K are drawn, where K
    is 0.7 % of the answers, but at least 50 and at most 1,000, as in Wan et
    al. 2016. A negative never has the words of the query or of one of its
    answers.

    Modules are divided 8:1:1 into train, dev and test. Modules that share a
    sentence, or nearly the same one (three quarters of the words), are in
    one split, and negatives are in the split of their list: no text of any
    list is in two splits.

    Args:
        folder: The folder of the collection. By default a folder named after
            the versions of the packages in `$KERAS_LSTM_DSSM_CACHE`, or in
            `~/.cache/keras_lstm_dssm`.
        progress: Whether to print to standard error when it is built.
            Default `False`.

    Returns:
        The collection, with grades 1 and 0, and the pairs of train as clicks.

    Raises:
        InputError: This package is not installed.

    Example:
        >>> build_api_sentences().splits  # doctest: +SKIP
        ('train', 'dev', 'test')
    """
    packages = distributions()
    if folder is None:
        key = fingerprint(packages, LISTS_FORMAT)
        folder = os.path.join(cache_folder(), f"api_sentences-{key}")
    if os.path.isdir(folder):
        return Collection(folder)
    if progress:
        print("Reading docstrings (once, ~1 minute) ...", file=sys.stderr)
    collection = write_lists(folder, adjacent_sentences(docstrings()))
    if progress:
        print(describe(collection), file=sys.stderr)
    return collection


class SentencePair(NamedTuple):
    """Holds two sentences, the second of which follows the first.

    Attributes:
        query: The first sentence.
        answer: The second sentence.
        module: The dotted name of the module that they are from.
    """

    query: str
    answer: str
    module: str


def adjacent_sentences(
    docs: Iterable[tuple[str, str]],
) -> Iterator[SentencePair]:
    """Yields the pairs of adjacent sentences, of 5 to 50 words each.

    Args:
        docs: (module, docstring); a docstring that was read before is
            skipped.
    """
    read: set[str] = set()
    for module, doc in docs:
        if doc in read:
            continue
        read.add(doc)
        for run in sentence_runs(doc):
            for query, answer in itertools.pairwise(run):
                sizes = len(query.split()), len(answer.split())
                if MIN_WORDS <= min(sizes) and max(sizes) <= MAX_WORDS:
                    yield SentencePair(query, answer, module)


def write_lists(
    folder: str | os.PathLike[str], pairs: Iterable[SentencePair]
) -> Collection:
    """Writes the lists of five of adjacent sentences.

    Args:
        folder: The folder to create.
        pairs: Pairs of sentences.

    Raises:
        InputError: A split has too few answers for a list.
    """
    lists = _Lists(pairs)
    splits = _splits(lists)
    # The answers that differ by words, numbered in their order.
    rows = {words: row for row, words in enumerate(lists.answer_texts)}
    titles = list(lists.answer_texts.values())
    split_of_row = [""] * len(rows)
    for split, answer in zip(splits, lists.answers, strict=True):
        split_of_row[rows[answer]] = split
    sizes = Counter(split_of_row)
    for split in SPLITS:
        if sizes[split] < 2 + NEGATIVES:
            raise InputError(
                f"found {sizes[split]} answers for {split}, expected"
                f" {2 + NEGATIVES} or more: give more docstrings"
            )
    drawable = _Drawable(titles, split_of_row)
    qrels: dict[str, dict[str, dict[str, int]]] = {s: {} for s in SPLITS}
    for number, query in enumerate(lists.queries):
        positive = rows[lists.answers[number]]
        excluded = {
            rows[words]
            for words in (query, *lists.all_answers[query])
            if words in rows
        }
        candidates = drawable.rows(positive, excluded)
        drawn = permutation(len(candidates), SEED, number)[:NEGATIVES]
        of_list = [positive, *(candidates[place] for place in drawn)]
        qrels[splits[number]][f"q{number + 1}"] = {
            f"d{of_list[place] + 1}": int(place == 0)
            for place in permutation(len(of_list), SEED, number, 1)
        }
    return write_collection(
        folder,
        {f"d{row + 1}": title for row, title in enumerate(titles)},
        {f"q{n + 1}": text for n, text in enumerate(lists.query_texts)},
        qrels,
        (
            Pair(text, lists.answer_texts[answer])
            for text, answer, split in zip(
                lists.query_texts, lists.answers, splits, strict=True
            )
            if split == "train"
        ),
    )


class _Lists:
    """Holds a query, its answer and its module for each list to make.

    Attributes:
        queries: The normalised words of each list's query, all distinct.
        query_texts: Its text.
        answers: The normalised words of its answer.
        modules: The module that both are from.
        answer_texts: Normalised words -> text of each distinct answer.
        all_answers: Words of a query -> words of all its answers.
    """

    def __init__(self, pairs: Iterable[SentencePair]) -> None:
        pairs = list(pairs)
        queries = normalize((pair.query for pair in pairs), "alphanumeric")
        answers = normalize((pair.answer for pair in pairs), "alphanumeric")
        self.queries: list[str] = []
        self.query_texts: list[str] = []
        self.answers: list[str] = []
        self.modules: list[str] = []
        self.answer_texts: dict[str, str] = {}
        self.all_answers: dict[str, list[str]] = {}
        for pair, query, answer in zip(pairs, queries, answers, strict=True):
            if query == answer:
                continue
            if query not in self.all_answers:
                self.queries.append(query)
                self.query_texts.append(pair.query)
                self.answers.append(answer)
                self.modules.append(pair.module)
                self.answer_texts.setdefault(answer, pair.answer)
            self.all_answers.setdefault(query, []).append(answer)


def _splits(lists: _Lists) -> list[str]:
    """Returns the split of each list, equal for lists that share a text."""
    groups = Groups(len(lists.queries))
    first_of_module: dict[str, int] = {}
    first_of_text: dict[str, int] = {}
    for number, module in enumerate(lists.modules):
        groups.join(number, first_of_module.setdefault(module, number))
        for words in (lists.queries[number], lists.answers[number]):
            groups.join(number, first_of_text.setdefault(words, number))
    texts = list(first_of_text)
    for one, other in near_duplicates(texts):
        groups.join(first_of_text[texts[one]], first_of_text[texts[other]])
    return groups.divide(
        lists.queries, {"test": HELD_OUT_SHARE, "dev": HELD_OUT_SHARE}
    )


class _Drawable:
    """Finds the answers that negatives of a list are drawn from.

    Args:
        titles: All answers.
        splits: The split of each.
    """

    def __init__(self, titles: list[str], splits: Sequence[str]) -> None:
        self._titles = titles
        self._split = np.array(splits)
        k = max(50, min(1000, math.ceil(0.007 * len(titles))))
        # One more: the best answer is mostly the positive itself.
        self._nearest = list(bm25_neighbours(titles, titles, k + 1))

    def rows(self, positive: int, excluded: set[int]) -> list[int]:
        """Returns the rows of answers like the positive, at least 4.

        They are those of the K best that are in the same split. Where there
        are fewer than 4, the next ones in the ranking are added.

        Args:
            positive: The row of the positive.
            excluded: The rows of other answers that may not be drawn.
        """
        found = self._allowed(self._nearest[positive], positive, excluded)
        if len(found) < NEGATIVES:
            (ranked,) = bm25_neighbours(
                [self._titles[positive]], self._titles, len(self._titles)
            )
            # Answers without a common word come last, in their order.
            others = np.setdiff1d(np.arange(len(self._titles)), ranked)
            every = np.concatenate([ranked, others])
            found = self._allowed(every, positive, excluded)[:NEGATIVES]
        return found

    def _allowed(
        self, rows: np.ndarray, positive: int, excluded: set[int]
    ) -> list[int]:
        same_split = rows[self._split[rows] == self._split[positive]]
        return [
            row
            for row in same_split.tolist()
            if row != positive and row not in excluded
        ]
