"""GivenNegatives: adds judged or mined negatives to batches of clicks."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.text import NormalizedTextCache, as_strings, normalize


class GivenNegatives:
    """Adds negatives that are listed for each query to batches of clicks.

    They may be judged (a person said that the title does not answer the
    query) or mined (`mine_negatives`: near, but not clicked). `TwoTower` uses
    them in addition to the negatives that it takes from the batch.

    For each click, k of the titles of its query are drawn, with repetition. A
    query without titles gets its clicked title k times, which the loss does
    not count as a negative. The draw is a function of the seed and of the
    number of the batch, so that a resumed run draws as an uninterrupted one.

    Args:
        titles: Query -> the titles to draw from. Queries with the same
            normalised words are one query. Memory holds each distinct text
            once, and 4 bytes for each pair.
        k: The number of negatives for each click.
        seed: Any int; another seed gives another draw. Default 0.
        split: How the encoder separates words, `"space"` or
            `"alphanumeric"`; see `normalize_texts`.
        normalized: Cache of normalised queries, with the same `split`, to
            share between several `GivenNegatives`. Default `None`: a new one.

    Raises:
        InputError: k is less than 1, or no query has a title.

    Example:
    >>> titles = {"hex bolt": ["wood glue", "bolt cutter"]}
    >>> negatives = GivenNegatives(titles, k=1)
    >>> batches = training_batches(log, 256, epochs=1, seed=0)
    >>> model.fit(negatives.attach(batches))
    """

    def __init__(
        self,
        titles: Mapping[str, Sequence[str]],
        k: int,
        seed: int = 0,
        split: str = "space",
        normalized: NormalizedTextCache | None = None,
    ) -> None:
        if k < 1:
            raise InputError(f"negatives a click must be 1 or more, not {k}")
        by_words: dict[str, list[str]] = {}
        words_of_each = normalize(list(titles), split)
        for words, given in zip(words_of_each, titles.values(), strict=True):
            if given:
                by_words.setdefault(words, []).extend(given)
        if not by_words:
            raise InputError("no query has a negative: there is none to give")
        self.k = k
        self.seed = seed
        self.split = split
        self._normalized = normalized or NormalizedTextCache(split)
        counts = [len(given) for given in by_words.values()]
        index: dict[str, int] = {}
        self._indices = tf.constant(
            [
                index.setdefault(title, len(index))
                for given in by_words.values()
                for title in given
            ],
            tf.int32,
        )
        self._titles = as_strings(list(index))
        # The last row, without titles, is that of unknown queries.
        self._counts = tf.constant([*counts, 0], tf.int32)
        self._starts = tf.constant(np.cumsum([0, *counts]), tf.int32)
        keys = as_strings(list(by_words))
        self._rows = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(keys, tf.range(len(keys))),
            len(keys),
        )

    def attach(
        self, batches: tf.data.Dataset, first_step: int = 0
    ) -> tf.data.Dataset:
        """Adds `negatives`, strings `[batch, k]`, to each batch.

        Args:
            batches: Dataset of `(query, document)`, strings `[batch]`.
            first_step: The index of the first batch in the whole run.

        Returns:
            A dataset of `(query, document, {"negatives": ...})`.
        """
        return batches.enumerate(first_step).map(
            lambda step, batch: (
                *batch,
                {"negatives": self._draw(step, *batch)},
            ),
            tf.data.AUTOTUNE,
        )

    def _draw(
        self, step: tf.Tensor, query: tf.Tensor, document: tf.Tensor
    ) -> tf.Tensor:
        row = self._rows.lookup(self._normalized(query))
        count = tf.gather(self._counts, row)[:, tf.newaxis]
        share = tf.random.stateless_uniform(
            [tf.size(row), self.k], [self.seed, step]
        )
        drawn = tf.cast(share * tf.cast(count, tf.float32), tf.int32)
        # Rounding of a share just below 1 may give the next query's title.
        drawn = tf.minimum(drawn, tf.maximum(count - 1, 0))
        position = tf.gather(self._starts, row)[:, tf.newaxis] + drawn
        position = tf.minimum(position, tf.size(self._indices) - 1)
        titles = tf.gather(self._titles, tf.gather(self._indices, position))
        return tf.where(count > 0, titles, document[:, tf.newaxis])


def titles_of_batch(
    document: tf.Tensor, extras: Mapping[str, Any]
) -> tf.Tensor:
    """Returns the titles of each row of a batch: the clicked one comes first.

    Args:
        document: The clicked titles, strings `[batch]`.
        extras: Further tensors of the batch; the negatives, strings
            `[batch, k]`, are `"negatives"`.

    Returns:
        Strings `[batch, 1 + k]`; `[batch, 1]` without negatives.
    """
    titles = document[:, tf.newaxis]
    if "negatives" in extras:
        titles = tf.concat([titles, extras["negatives"]], axis=1)
    return titles
