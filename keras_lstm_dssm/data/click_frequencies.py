"""ClickFrequencies: log click shares of titles, for the logQ correction."""

import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.data.click_log import ClickLog
from keras_lstm_dssm.data.given_negatives import titles_of_batch
from keras_lstm_dssm.text import NormalizedTextCache, as_strings

_TITLES_AT_ONCE = 100_000


class ClickFrequencies:
    """Adds the log of each title's share of the clicks to batches.

    A title is an in-batch negative as often as it is clicked, which lowers
    the scores of popular titles. `TwoTower` subtracts `log_q` from the scores
    in training (Bengio and Senecal 2008; Yi et al. 2019), so that the vectors
    are trained as if all titles were drawn equally often.

    Clicks are counted in buckets by a hash of the title's normalised words,
    so that the memory does not grow with the log; titles that share a bucket
    count as one.

    Args:
        titles: The clicked titles, each as often as it is clicked.
        buckets: The number of counters, 8 bytes each. Default 2^20.
        split: The rule by which the encoder separates words; see
            `normalize_texts`.

    Attributes:
        counts: int64 `[buckets]`, the number of clicks in each bucket.

    Example:
    >>> frequencies = ClickFrequencies.from_log(log)
    >>> batches = training_batches(log, 256, epochs=1, seed=0)
    >>> model.fit(frequencies.attach(batches))
    """

    def __init__(
        self, titles: Iterable[str], buckets: int = 2**20, split: str = "space"
    ) -> None:
        self.buckets = buckets
        self.split = split
        self._normalized = NormalizedTextCache(split)
        counts = np.zeros(buckets, np.int64)
        titles = iter(titles)
        while block := list(itertools.islice(titles, _TITLES_AT_ONCE)):
            hashed = self._hash(as_strings(block)).numpy()
            counts += np.bincount(hashed, minlength=buckets)
        self.count(counts)

    @classmethod
    def from_log(
        cls, log: ClickLog, split: str = "space"
    ) -> "ClickFrequencies":
        """Counts the clicks of a log."""
        return cls((pair.document for pair in log), split=split)

    def count(self, counts: np.ndarray) -> None:
        """Sets the number of clicks in each bucket.

        Args:
            counts: int `[buckets]`, such as the sums over several logs.
        """
        self.counts = counts
        # An unclicked title, such as a mined negative, counts as half a click.
        share = np.maximum(counts, 0.5) / max(1, counts.sum())
        self.log_q = tf.constant(np.log(share), tf.float32)

    def _hash(self, titles: tf.Tensor) -> tf.Tensor:
        return tf.strings.to_hash_bucket_fast(
            self._normalized(titles), self.buckets
        )

    def __call__(self, titles: tf.Tensor) -> tf.Tensor:
        """Looks up `log_q` of titles, float32 of the same shape."""
        return tf.gather(self.log_q, self._hash(titles))

    def attach(self, batches: tf.data.Dataset) -> tf.data.Dataset:
        """Adds `log_q`, float32 `[batch, 1 + k]`, to each batch.

        Args:
            batches: Dataset of `(query, document)`, or of `(query, document,
                {"negatives": strings [batch, k]})`, see `GivenNegatives`.
        """

        def with_log_q(
            query: tf.Tensor,
            document: tf.Tensor,
            extras: dict[str, Any] | None = None,
        ) -> tuple[Any, ...]:
            extras = extras or {}
            titles = titles_of_batch(document, extras)
            return query, document, {**extras, "log_q": self(titles)}

        return batches.map(with_log_q, tf.data.AUTOTUNE)
