"""GivenNegatives: titles that a query is to be told from, beside the clicks."""

from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.text import as_strings


class GivenNegatives:
    """Adds negatives of each query's own to batches of clicks.

    They may be judged (a person said that the title does not answer the
    query) or mined (`mine_negatives`: near, but not clicked). `TwoTower` sets
    them beside those that it takes by itself.

    Each time a query comes by, k of its titles are drawn, with repetition; a
    query without any gets its clicked title k times, which no loss counts.
    The draw is a function of the seed and of the batch's number, so a resumed
    run draws as the whole one.

    Args:
        titles: Query -> the titles that it may get. Held in memory: each
            distinct text once, and 4 bytes a pair.
        k: Negatives a click.
        seed: Any int.

    Raises:
        InputError: k is less than 1, or no query has a title.

    Example:
    >>> given = GivenNegatives({"hex bolt": ["wood glue", "bolt cutter"]}, 1)
    >>> model.fit(given.attach(training_batches(log, 256, epochs=1, seed=0)))
    """

    def __init__(
        self, titles: Mapping[str, Sequence[str]], k: int, seed: int = 0
    ) -> None:
        if k < 1:
            raise InputError(f"negatives a click must be 1 or more, not {k}")
        named = {query: found for query, found in titles.items() if found}
        if not named:
            raise InputError("no query has a negative: there is none to give")
        self.k = k
        self.seed = seed
        counts = [len(found) for found in named.values()]
        place: dict[str, int] = {}
        self._places = tf.constant(
            [
                place.setdefault(title, len(place))
                for found in named.values()
                for title in found
            ],
            tf.int32,
        )
        self._titles = as_strings(list(place))
        # A last row, empty, for queries that are not there.
        self._counts = tf.constant([*counts, 0], tf.int32)
        self._starts = tf.constant(np.cumsum([0, *counts]), tf.int32)
        keys = as_strings(list(named))
        self._rows = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(keys, tf.range(len(keys))),
            len(keys),
        )

    def attach(
        self, batches: tf.data.Dataset, first_update: int = 0
    ) -> tf.data.Dataset:
        """Adds `negatives`, strings `[batch, k]`, to each batch.

        Args:
            batches: `(query, document)`, strings `[batch]`.
            first_update: The number of the first batch in the whole run.

        Returns:
            A dataset of `(query, document, {"negatives": ...})`.
        """
        return batches.enumerate(first_update).map(
            lambda update, batch: (
                *batch,
                {"negatives": self._draw(update, *batch)},
            ),
            tf.data.AUTOTUNE,
        )

    def _draw(
        self, update: tf.Tensor, query: tf.Tensor, document: tf.Tensor
    ) -> tf.Tensor:
        row = self._rows.lookup(query)
        count = tf.gather(self._counts, row)[:, tf.newaxis]
        share = tf.random.stateless_uniform(
            [tf.size(row), self.k], [self.seed, update]
        )
        drawn = tf.cast(share * tf.cast(count, tf.float32), tf.int32)
        # Rounded up, a share just below 1 would be the next query's first.
        drawn = tf.minimum(drawn, tf.maximum(count - 1, 0))
        place = tf.gather(self._starts, row)[:, tf.newaxis] + drawn
        place = tf.minimum(place, tf.size(self._places) - 1)
        titles = tf.gather(self._titles, tf.gather(self._places, place))
        return tf.where(count > 0, titles, document[:, tf.newaxis])
