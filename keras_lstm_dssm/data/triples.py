"""Triples of query, positive and negative, to train pair scorers on.

A negative is a document judged not relevant, or a title mined from a click log.
"""

from collections.abc import Iterable, Iterator
from itertools import accumulate, chain
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.data.batches import (
    generated_batches,
    permutation,
    random_bits,
)
from keras_lstm_dssm.data.click_log import ClickLog, weight_of
from keras_lstm_dssm.data.collection import Collection
from keras_lstm_dssm.errors import InputError, check_at_least
from keras_lstm_dssm.evaluation.bm25 import bm25_neighbours
from keras_lstm_dssm.plain_files import one_line
from keras_lstm_dssm.text.word_hashing import as_strings, normalize

_QUERIES_AT_ONCE = 1024


class JudgedList(NamedTuple):
    """Holds titles that answer a query and titles that do not."""

    query: str
    positives: list[str]
    negatives: list[str]
    weights: list[float] | None = None  # of each positive; `None`: all are 1


def judged_lists(
    collection: Collection, split: str = "train", min_relevant: int = 1
) -> Iterator[JudgedList]:
    """Yields a list for each query of a split."""
    queries, documents = collection.queries, collection.documents
    for query_id, grades in collection.qrels(split).items():
        positives: list[str] = []
        negatives: list[str] = []
        for document_id, grade in grades.items():
            titles = positives if grade >= min_relevant else negatives
            titles.append(one_line(documents[document_id]))
        yield JudgedList(one_line(queries[query_id]), positives, negatives)


def drop_contradicted(lists: Iterable[JudgedList]) -> Iterator[JudgedList]:
    """Removes negatives that are also positives of the same query."""
    lists = list(lists)
    texts = dict.fromkeys(
        text
        for judged in lists
        for text in (judged.query, *judged.positives, *judged.negatives)
    )
    words = dict(zip(texts, normalize(texts, "alphanumeric"), strict=True))
    # A query can have several lists, and a title several ids. Therefore the
    # positives of all lists are collected first: words of a query -> words of
    # each positive.
    positives: dict[str, set[str]] = {}
    for judged in lists:
        answers = positives.setdefault(words[judged.query], set())
        answers.update(words[title] for title in judged.positives)
    for judged in lists:
        answers = positives[words[judged.query]]
        remaining = [
            title for title in judged.negatives if words[title] not in answers
        ]
        yield judged._replace(negatives=remaining)


def clicked_lists(
    log: ClickLog, top: int = 4, index: Any = None, seed: int = 0
) -> Iterator[JudgedList]:
    """Yields each query's clicked titles, and up to `top` mined negatives.

    A title that was clicked n times occurs n times in the positives.
    """
    check_at_least(1, top=top)
    pairs, pair_weights = [], []
    for pair, line in log.lines():
        pairs.append((one_line(pair.query), one_line(pair.document)))
        if log.weighted:
            pair_weights.append(weight_of(line))
    titles = list(dict.fromkeys(title for _, title in pairs))
    words_of_titles = normalize(titles, "alphanumeric")
    words = dict(zip(titles, words_of_titles, strict=True))
    texts: dict[str, str] = {}
    clicked: dict[str, list[str]] = {}
    weights: dict[str, list[float]] = {}
    queries = normalize((query for query, _ in pairs), "alphanumeric")
    for row, query_words in enumerate(queries):
        query, title = pairs[row]
        texts.setdefault(query_words, query)
        clicked.setdefault(query_words, []).append(title)
        if pair_weights:
            weights.setdefault(query_words, []).append(pair_weights[row])
    # All queries of a block are searched to the same depth: `top` plus the
    # largest number of titles clicked for a query of the block. The queries are
    # sorted by their number of clicked titles. Therefore the last query of a
    # block has the largest number, and most blocks have a small depth.
    order = sorted(clicked, key=lambda query: len(set(clicked[query])))
    negatives: dict[str, list[str]] = {}
    for start in range(0, len(order), _QUERIES_AT_ONCE):
        block = order[start : start + _QUERIES_AT_ONCE]
        depth = top + len(set(clicked[block[-1]]))
        query_texts = [texts[query] for query in block]
        for query, nearest in zip(
            block, _nearest(query_texts, titles, depth, index), strict=True
        ):
            excluded = {words[title] for title in clicked[query]}
            bits = random_bits(4 * depth, seed, len(negatives))
            random_titles = [
                titles[row] for row in bits % np.uint64(len(titles))
            ]
            negatives[query] = []
            for title in (*nearest, *random_titles):
                title_words = words.get(title, title)
                if len(negatives[query]) < top and title_words not in excluded:
                    excluded.add(title_words)
                    negatives[query].append(title)
    for query, text in texts.items():
        yield JudgedList(
            text, clicked[query], negatives[query], weights.get(query)
        )


def _nearest(
    queries: list[str], titles: list[str], depth: int, index: Any
) -> Iterator[list[str]]:
    if index is None:
        for rows in bm25_neighbours(queries, titles, depth):
            yield [titles[row] for row in rows]
    else:
        for hits in index.search(queries, depth):
            yield [hit.id for hit in hits]


_ROWS_PER_ELEMENT = 8192


class Triples:
    """Holds judged lists, and streams their triples for training.

    Each positive of a query forms a triple with each negative of the query: p
    positives and n negatives give p * n triples. Texts with equal normalised
    words count as equal.

    Args:
        lists: Query, positives and negatives of each list. Negatives that are
            also positives of the query are left out. Lists without positives
            or without negatives are then left out.
        held_out: Lists of dev and test, whose queries are left out of `lists`.
        name: Name of the lists in error messages.

    Attributes:
        texts: The distinct texts, for a vocabulary.
        lists: The number of lists with triples.
        no_positive: The number of lists left out because they lack positives.
        no_negative: The number of lists left out because they lack negatives.
        both_kinds: The number of negatives left out because they are also
            positives of the query.
        held_out_queries: The number of lists left out because of `held_out`.
        shared_answers: The number of distinct positives that are also positives
            in dev or test. These positives are not left out, because a product
            can answer queries of all splits. If each answer is for one question
            only, a number above 0 shows that the splits overlap.

    Raises:
        InputError: No list has a positive and a negative.

    Example:
    >>> triples = Triples([("hex bolt", ["steel hex bolt"], ["wood glue"])])
    >>> len(triples)
    1
    """

    def __init__(
        self,
        lists: Iterable[JudgedList | tuple[str, list[str], list[str]]],
        held_out: Iterable[JudgedList] = (),
        name: str = "the lists",
    ) -> None:
        held_out_words, held_out_answers = _words_of(held_out)
        self.no_positive = self.no_negative = 0
        self.both_kinds = self.held_out_queries = 0
        text_rows: dict[str, int] = {}
        query_rows, positives, negatives = [], [], []
        weights: list[float] = []
        judged = [JudgedList(*entry) for entry in lists]
        words = normalize([entry.query for entry in judged], "alphanumeric")
        for unfiltered, entry, query_words in zip(
            judged, drop_contradicted(judged), words, strict=True
        ):
            self.both_kinds += len(unfiltered.negatives) - len(entry.negatives)
            if query_words in held_out_words:
                self.held_out_queries += 1
            elif not entry.positives:
                self.no_positive += 1
            elif not entry.negatives:
                self.no_negative += 1
            else:
                columns = [entry.query], entry.positives, entry.negatives
                query_row, positive_rows, negative_rows = (
                    [text_rows.setdefault(t, len(text_rows)) for t in column]
                    for column in columns
                )
                query_rows += query_row
                positives.append(positive_rows)
                negatives.append(negative_rows)
                weights += entry.weights or [1.0] * len(entry.positives)
        self.texts = list(text_rows)
        self.lists = len(query_rows)
        if not query_rows:
            raise InputError(
                f"{name}: found no query with a positive and a negative among"
                f" {len(judged):,}, expected some: add judged documents of"
                " both kinds, or train on clicks with mined negatives"
            )
        self._query = np.array(query_rows, np.int32)
        self._positive, self._positive_bounds = _flat(positives)
        self._negative, self._negative_bounds = _flat(negatives)
        self._weight: np.ndarray | None = None  # one for each positive
        if any(entry.weights for entry in judged):
            self._weight = np.array(weights, np.float32)
        counts = np.diff(self._positive_bounds) * np.diff(self._negative_bounds)
        self._starts = np.concatenate([[0], np.cumsum(counts)])
        self.shared_answers = 0
        if held_out_answers:
            texts = sorted({self.texts[row] for row in self._positive})
            answers = normalize(texts, "alphanumeric")
            self.shared_answers = len(held_out_answers.intersection(answers))

    @classmethod
    def from_collection(
        cls, collection: Collection, split: str = "train", min_relevant: int = 1
    ) -> "Triples":
        """Takes the judged lists of one split.

        For the split train, the lists of all other splits are `held_out`.

        Args:
            collection: A collection with documents judged not relevant.
            split: Name of the split. Default `"train"`.
            min_relevant: The lowest grade of a positive. Default 1.

        Raises:
            InputError: See the class and `Collection`.

        Example:
        >>> triples = Triples.from_collection(Collection("data/squad"))
        """
        held_out = [
            judged
            for other_split in collection.splits
            if split == "train" and other_split != split
            for judged in judged_lists(collection, other_split, min_relevant)
        ]
        name = f"{collection.folder}, split {split}"
        lists = judged_lists(collection, split, min_relevant)
        return cls(lists, held_out, name)

    @classmethod
    def from_clicks(
        cls, log: ClickLog, top: int = 4, index: Any = None, seed: int = 0
    ) -> "Triples":
        """Takes clicked titles as positives, and mines negatives.

        Negatives are the titles nearest to the query among the titles that
        were not clicked for the query. If too few titles match, random titles
        are added.

        Args:
            log: The click log.
            top: Largest number of negatives of a query. Default 4.
            index: An `Index` of the titles, to search in. Default `None`: BM25.
            seed: Any int; another seed gives other random titles. Default 0.

        Example:
        >>> triples = Triples.from_clicks(ClickLog("clicks.tsv.gz"))
        """
        lists = clicked_lists(log, top, index, seed)
        return cls(lists, name=", ".join(log.paths[:3]))

    def __len__(self) -> int:
        """Returns the number of triples."""
        return int(self._starts[-1])

    def __iter__(self) -> Iterator[tuple[str, str, str]]:
        for query, positive, negative in self.rows(np.arange(len(self))):
            yield self.texts[query], self.texts[positive], self.texts[negative]

    @property
    def positives(self) -> int:
        """The number of pairs of a query and a positive."""
        return len(self._positive)

    def positive_pairs(self) -> tuple[list[str], list[str]]:
        """Returns the queries and the positives of all pairs, in order."""
        rows = np.repeat(self._query, np.diff(self._positive_bounds))
        return (
            [self.texts[row] for row in rows],
            [self.texts[row] for row in self._positive],
        )

    def describe(self) -> str:
        """Describes the number of triples, and what was left out."""
        parts = [f"{len(self):,} triples of {self.lists:,} queries"]
        parts += [
            f"{count:,} {what}"
            for count, what in (
                (self.no_positive, "queries have no positive and are left out"),
                (self.no_negative, "queries have no negative and are left out"),
                (
                    self.both_kinds,
                    "negatives are positives of their query and are left out",
                ),
                (self.held_out_queries, "queries of dev or test are left out"),
                (self.shared_answers, "positives are also in dev or test"),
            )
            if count
        ]
        return "; ".join(parts)

    def rows(self, numbers: np.ndarray) -> np.ndarray:
        """Returns n triples as indices of `texts`, int32 `[n, 3]`.

        The columns are query, positive and negative. `numbers`, int `[n]`, are
        the numbers of the triples, which are counted from 0.
        """
        return self._rows_and_positives(numbers)[:, :3]

    def _rows_and_positives(self, numbers: np.ndarray) -> np.ndarray:
        """Returns the columns of `rows`, and a fourth column.

        The fourth column has positives' indices in `_positive` and `_weight`.
        """
        lists = np.searchsorted(self._starts, numbers, side="right") - 1
        width = np.diff(self._negative_bounds)[lists]
        positive, negative = np.divmod(numbers - self._starts[lists], width)
        positive += self._positive_bounds[lists]
        negative += self._negative_bounds[lists]
        return np.stack(
            [
                self._query[lists],
                self._positive[positive],
                self._negative[negative],
                positive.astype(np.int32),
            ],
            axis=1,
        )

    def batches(
        self,
        batch_size: int = 128,
        *,
        epochs: int,
        seed: int,
        first_step: int = 0,
    ) -> tf.data.Dataset:
        """Streams all triples, in a new random order in each epoch.

        The order depends only on `seed` and the epoch. With `first_step=n` the
        dataset leaves out exactly the first n batches.

        Args:
            batch_size: The number of triples in a batch. The last batch of an
                epoch may be smaller.
            epochs: The number of passes over the triples.
            seed: Any int; another seed gives another order.
            first_step: The number of batches to skip at the start. Default 0.

        Returns:
            A dataset of (query, positive, negative), string tensors of shape
            [batch]; with weights also the positive's weight, float32 [batch].
            The cardinality over all epochs is known.

        Raises:
            InputError: `batch_size` is less than 1.

        Example:
        >>> scorer.fit(triples.batches(128, epochs=1, seed=0))
        """
        check_at_least(1, batch_size=batch_size)
        per_epoch = -(-len(self) // batch_size)
        first_epoch, skipped = divmod(first_step, per_epoch)
        # TensorFlow calls the Python generator for each element, and each call
        # is slow. Therefore an element holds several batches.
        size = batch_size * max(1, _ROWS_PER_ELEMENT // batch_size)

        def elements() -> Iterator[np.ndarray]:
            for epoch in range(first_epoch, epochs):
                first = skipped * batch_size if epoch == first_epoch else 0
                order = permutation(len(self), seed, epoch)
                for start in range(first, len(order), size):
                    yield self._rows_and_positives(order[start : start + size])

        texts = as_strings(self.texts)
        weights = None if self._weight is None else tf.constant(self._weight)

        def batch(rows: tf.Tensor) -> tuple[tf.Tensor, ...]:
            triple = tuple(tf.unstack(tf.gather(texts, rows[:, :3]), axis=1))
            if weights is None:
                return triple
            return *triple, tf.gather(weights, rows[:, 3])

        spec = tf.TensorSpec([None, 4], tf.int32)
        count = max(0, epochs * per_epoch - first_step)
        return generated_batches(elements, spec, batch_size, batch, count)


def _words_of(lists: Iterable[JudgedList]) -> tuple[set[str], set[str]]:
    lists = list(lists)
    queries = {judged.query for judged in lists}
    answers = {text for judged in lists for text in judged.positives}
    return (
        set(normalize(queries, "alphanumeric")),
        set(normalize(answers, "alphanumeric")),
    )


def _flat(lists: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Returns the concatenated lists, and the bounds of each list."""
    bounds = list(accumulate(map(len, lists), initial=0))
    flat = list(chain.from_iterable(lists))
    return np.array(flat, np.int32), np.array(bounds, np.int64)
