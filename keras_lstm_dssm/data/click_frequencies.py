"""ClickFrequencies: how often each title is clicked, for the loss."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.data.click_log import ClickLog
from keras_lstm_dssm.text import as_strings

_TITLES_AT_ONCE = 100_000


class ClickFrequencies:
    """Adds the log of each title's share of the clicks to batches.

    In-batch negatives are drawn as often as they are clicked, which pushes
    popular titles down. `TwoTower` takes `log_q` off their scores in training
    (Bengio and Senecal 2008; Yi et al. 2019), so that the vectors are trained
    as if all titles were drawn evenly.

    Clicks are counted in buckets, so that the memory does not grow with the
    log; titles that share a bucket count as one.

    Args:
        titles: The clicked titles, each as often as it is clicked.
        buckets: Counters, 8 bytes each.

    Example:
    >>> frequencies = ClickFrequencies.of(log)
    >>> model.fit(
    ...     frequencies.attach(training_batches(log, 256, epochs=1, seed=0))
    ... )
    """

    def __init__(self, titles: Iterable[str], buckets: int = 2**20) -> None:
        counts = np.zeros(buckets, np.int64)
        some: list[str] = []
        for title in titles:
            some.append(title)
            if len(some) == _TITLES_AT_ONCE:
                counts += _counted(some, buckets)
                some = []
        counts += _counted(some, buckets)
        # A title without a click, a mined negative, counts as half a one.
        share = np.maximum(counts, 0.5) / max(1, counts.sum())
        self.log_q = tf.constant(np.log(share), tf.float32)

    @classmethod
    def of(cls, log: ClickLog) -> "ClickFrequencies":
        """Counts the clicks of a log."""
        return cls(pair.document for pair in log)

    def __call__(self, titles: tf.Tensor) -> tf.Tensor:
        """Looks up log q of titles, float32 of the same shape."""
        buckets = self.log_q.shape[0]
        return tf.gather(self.log_q, _bucket(titles, buckets))

    def attach(self, batches: tf.data.Dataset) -> tf.data.Dataset:
        """Adds `log_q`, float32 `[batch, 1 + k]`, to each batch.

        Args:
            batches: `(query, document)`, or `(query, document, {"negatives":
                strings [batch, k]})`, see `GivenNegatives`.
        """

        def with_log_q(
            query: tf.Tensor,
            document: tf.Tensor,
            extras: dict[str, Any] | None = None,
        ) -> tuple[Any, ...]:
            extras = extras or {}
            titles = document[:, tf.newaxis]
            if "negatives" in extras:
                titles = tf.concat([titles, extras["negatives"]], axis=1)
            return query, document, {**extras, "log_q": self(titles)}

        return batches.map(with_log_q, tf.data.AUTOTUNE)


def _counted(titles: list[str], buckets: int) -> np.ndarray:
    places = _bucket(as_strings(titles), buckets).numpy()
    return np.bincount(places, minlength=buckets)


def _bucket(titles: tf.Tensor, buckets: int) -> tf.Tensor:
    return tf.strings.to_hash_bucket_fast(titles, buckets)
