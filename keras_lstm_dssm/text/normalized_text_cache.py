"""NormalizedTextCache: normalises texts, and caches the results."""

import threading

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.text.data_function import DataFunction
from keras_lstm_dssm.text.hashed_text_cache import MAX_BYTES
from keras_lstm_dssm.text.word_hashing import normalize_texts


class NormalizedTextCache:
    """Normalises texts as `normalize_texts` does, and caches the results.

    A training reads the same texts in every epoch. The cache is bounded: when
    it is full, texts that it does not hold are normalised each time.

    Args:
        split: The rule that separates words; see `normalize_texts`.
        max_bytes: Largest total size of the cached texts.

    Example:
    >>> NormalizedTextCache()(tf.constant(["ANGLE  bracket"])).numpy().tolist()
    [b'angle bracket']
    """

    def __init__(
        self, split: str = "space", max_bytes: int = MAX_BYTES
    ) -> None:
        self._bytes_left = max_bytes
        self._normalize = tf.function(
            lambda texts: normalize_texts(texts, None, split),
            [tf.TensorSpec([None], tf.string)],
            autograph=False,
        )
        self._lock = threading.Lock()  # `tf.data` calls from several threads
        self._known: dict[bytes, bytes] = {}

    def __call__(self, texts: tf.Tensor) -> tf.Tensor:
        """Normalises strings of any shape, eagerly or in `tf.data`."""
        normal = DataFunction(self._normal, tf.string)
        flat = normal(tf.reshape(texts, [-1]))
        return tf.reshape(flat, tf.shape(texts))

    def _normal(self, texts: np.ndarray) -> np.ndarray:
        given = texts.tolist()
        with self._lock:
            known, fresh = self._known, {}
            new = [text for text in dict.fromkeys(given) if text not in known]
            if new:
                normal = self._normalize(tf.constant(new)).numpy().tolist()
                fresh = dict(zip(new, normal, strict=True))
                self._bytes_left = max(0, self._bytes_left - sum(map(len, new)))
                if self._bytes_left:
                    known.update(fresh)
            # No text is empty when it is normalised.
            return np.array([known.get(t) or fresh[t] for t in given], object)
