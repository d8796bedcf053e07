"""Triples: streams a query, a positive and a negative, shuffled."""

from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.data.batches import cut, permutation
from keras_lstm_dssm.data.beir import Collection
from keras_lstm_dssm.data.click_log import ClickLog
from keras_lstm_dssm.data.judged_lists import (
    JudgedList,
    clicked_lists,
    judged_lists,
    only_negatives,
)
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.text import as_strings, normalize

_ROWS_PER_ELEMENT = 8192


class Triples:
    """Holds judged lists, and streams their triples to train on.

    Each positive of a query forms a triple with each of its negatives, so
    that a list of p positives and n negatives gives p * n triples. Memory
    holds each distinct text once and a number for each document of a list,
    not the triples.

    Args:
        lists: Query, positives and negatives; a list without positives or
            without negatives is counted and left out, and so is a negative
            with the normalised words of a positive of the same query.
        held_out: Lists of dev and test; a list whose query has the same
            normalised words as one of theirs is counted and left out.
        name: What messages call the lists.

    Attributes:
        texts: The distinct texts, for a vocabulary.
        lists: The number of lists with triples.
        no_positive: The number of lists left out without a positive.
        no_negative: The number of lists left out without a negative.
        both_kinds: The number of negatives left out because they are
            positives of the same query, too.
        held_out_queries: The number of lists left out because their query
            is one of dev or test.
        shared_answers: The number of distinct positives of dev and test that
            are positives here, too. They are not left out: where products
            are searched, the same product answers queries of all splits. In
            a set of questions with answers of their own it must be 0.

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
        asked, answers = _words_of(held_out)
        self.no_positive = self.no_negative = 0
        self.both_kinds = self.held_out_queries = 0
        numbers: dict[str, int] = {}
        query_rows, positives, negatives = [], [], []
        judged = [JudgedList(*one) for one in lists]
        words = normalize([one.query for one in judged], "alphanumeric")
        for given, one, of_query in zip(
            judged, only_negatives(judged), words, strict=True
        ):
            self.both_kinds += len(given.negatives) - len(one.negatives)
            if of_query in asked:
                self.held_out_queries += 1
            elif not one.positives:
                self.no_positive += 1
            elif not one.negatives:
                self.no_negative += 1
            else:
                rows = [
                    [numbers.setdefault(text, len(numbers)) for text in part]
                    for part in ([one.query], one.positives, one.negatives)
                ]
                query_rows += rows[0]
                positives.append(rows[1])
                negatives.append(rows[2])
        self.texts = list(numbers)
        self.lists = len(query_rows)
        if not query_rows:
            raise InputError(
                f"{name}: found no query with a positive and a negative among"
                f" {len(judged):,}, expected some: add judged documents of"
                " both kinds, or train on clicks with mined negatives"
            )
        self._query = np.array(query_rows, np.int32)
        self._positive, self._positives = _flat(positives)
        self._negative, self._negatives = _flat(negatives)
        counts = np.diff(self._positives) * np.diff(self._negatives)
        self._starts = np.concatenate([[0], np.cumsum(counts)])
        used = {self.texts[row] for row in self._positive} if answers else set()
        self.shared_answers = len(
            answers.intersection(normalize(sorted(used), "alphanumeric"))
        )

    @classmethod
    def from_collection(
        cls,
        collection: Collection,
        split: str = "train",
        min_relevant: int = 1,
    ) -> "Triples":
        """Takes the judged lists of a split.

        Only the qrels of this split are trained on. For the training split,
        its queries and positives are compared, by their normalised words,
        with those of dev and test: see `held_out_queries` and
        `shared_answers`.

        Args:
            collection: A collection with documents judged not relevant.
            split: Name of one of its splits.
            min_relevant: Grade from which a document is a positive.

        Raises:
            InputError: See the class and `Collection`.

        Example:
        >>> triples = Triples.from_collection(Collection("data/squad"))
        """
        held_out = [
            one
            for other in collection.splits
            if split == "train" and other != split
            for one in judged_lists(collection, other, min_relevant)
        ]
        name = f"{collection.folder}, split {split}"
        lists = judged_lists(collection, split, min_relevant)
        return cls(lists, held_out, name)

    @classmethod
    def from_clicks(
        cls, log: ClickLog, top: int = 4, index: Any = None, seed: int = 0
    ) -> "Triples":
        """Takes the clicks of a log, with mined negatives.

        Args:
            log: The click log.
            top: See `clicked_lists`.
            index: See `clicked_lists`.
            seed: See `clicked_lists`.

        Raises:
            InputError: See the class and `clicked_lists`.

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
        """The number of pairs of a query and one of its positives."""
        return len(self._positive)

    def positive_pairs(self) -> tuple[list[str], list[str]]:
        """Returns the queries and their positives, each pair once."""
        rows = np.repeat(self._query, np.diff(self._positives))
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
                (self.no_positive, "queries without a positive left out"),
                (self.no_negative, "queries without a negative left out"),
                (
                    self.both_kinds,
                    "negatives that are positives of their query left out",
                ),
                (self.held_out_queries, "queries of dev or test left out"),
                (self.shared_answers, "answers of dev and test among theirs"),
            )
            if count
        ]
        return "; ".join(parts)

    def rows(self, numbers: np.ndarray) -> np.ndarray:
        """Returns triples as rows of `texts`.

        Args:
            numbers: int `[n]`, numbers of triples from 0 to `len` - 1.

        Returns:
            int32 `[n, 3]`: query, positive, negative.
        """
        lists = np.searchsorted(self._starts, numbers, side="right") - 1
        width = np.diff(self._negatives)[lists]
        positive, negative = np.divmod(numbers - self._starts[lists], width)
        return np.stack(
            [
                self._query[lists],
                self._positive[self._positives[lists] + positive],
                self._negative[self._negatives[lists] + negative],
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
        """Streams all triples, shuffled anew in each epoch.

        The order is a function of `seed` and the epoch alone. A run that
        resumes after n training steps, with `first_step=n`, sees exactly the
        batches that an uninterrupted run sees from n on.

        Args:
            batch_size: Triples in a batch. The last batch of an epoch holds
                what is left.
            epochs: The number of passes over the triples.
            seed: Any int; another seed gives another order.
            first_step: The number of batches to leave out at the start.

        Returns:
            A dataset of (query, positive, negative), string tensors of shape
            [batch]. Its cardinality, over all epochs, is known.

        Raises:
            InputError: `batch_size` is less than 1.

        Example:
        >>> scorer.fit(triples.batches(128, epochs=1, seed=0))
        """
        if batch_size < 1:
            raise InputError(f"batch_size must be 1 or more, not {batch_size}")
        per_epoch = -(-len(self) // batch_size)
        first_epoch, skipped = divmod(first_step, per_epoch)
        # Several batches at once: each call from TensorFlow to Python takes
        # time.
        size = batch_size * max(1, _ROWS_PER_ELEMENT // batch_size)

        def elements() -> Iterator[np.ndarray]:
            for epoch in range(first_epoch, epochs):
                first = skipped * batch_size if epoch == first_epoch else 0
                order = permutation(len(self), seed, epoch)
                for start in range(first, len(order), size):
                    yield self.rows(order[start : start + size])

        texts = as_strings(self.texts)
        return (
            tf.data.Dataset.from_generator(
                elements, output_signature=tf.TensorSpec([None, 3], tf.int32)
            )
            .flat_map(lambda rows: cut(rows, batch_size))
            .map(
                lambda rows: tuple(tf.unstack(tf.gather(texts, rows), axis=1)),
                tf.data.AUTOTUNE,
            )
            .prefetch(tf.data.AUTOTUNE)
            .apply(
                tf.data.experimental.assert_cardinality(
                    max(0, epochs * per_epoch - first_step)
                )
            )
        )


def _words_of(lists: Iterable[JudgedList]) -> tuple[set[str], set[str]]:
    """Returns the normalised words of the queries and of the positives."""
    listed = list(lists)
    queries = dict.fromkeys(one.query for one in listed)
    answers = dict.fromkeys(text for one in listed for text in one.positives)
    return (
        set(normalize(queries, "alphanumeric")),
        set(normalize(answers, "alphanumeric")),
    )


def _flat(parts: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Returns all numbers, and where each part begins and the last ends."""
    return (
        np.array([number for part in parts for number in part], np.int32),
        np.array(list(accumulate(map(len, parts), initial=0)), np.int64),
    )
