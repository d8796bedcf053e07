"""NormalTexts: normalises texts, each of them once."""

import threading

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.text.word_hashing import normalize_texts
from keras_lstm_dssm.text.word_memory import ROOM


class NormalTexts:
    """Normalises texts as `normalize_texts` does, and remembers the results.

    A training reads the same texts in every epoch. All is forgotten when the
    texts exceed a limit, so that the memory does not grow with the log.

    Args:
        split: The rule that separates words; see `normalize_texts`.
        room: Bytes of texts to remember.

    Example:
    >>> NormalTexts()(tf.constant(["ANGLE  bracket"])).numpy().tolist()
    [b'angle bracket']
    """

    def __init__(self, split: str = "space", room: int = ROOM) -> None:
        self.room = room
        self._normalize = tf.function(
            lambda texts: normalize_texts(texts, None, split),
            [tf.TensorSpec([None], tf.string)],
        )
        self._lock = threading.Lock()  # `tf.data` calls from several threads
        self._known: dict[bytes, bytes] = {}
        self._bytes = 0

    def __call__(self, texts: tf.Tensor) -> tf.Tensor:
        """Normalises strings of any shape, eagerly or in `tf.data`."""
        flat = tf.numpy_function(
            self._normal, [tf.reshape(texts, [-1])], tf.string, stateful=False
        )
        return tf.reshape(flat, tf.shape(texts))

    def _normal(self, texts: np.ndarray) -> np.ndarray:
        with self._lock:
            if self._bytes > self.room:
                self._known, self._bytes = {}, 0
            known, given = self._known, texts.tolist()
            new = [text for text in dict.fromkeys(given) if text not in known]
            if new:
                self._bytes += sum(map(len, new))
                normal = self._normalize(tf.constant(new)).numpy().tolist()
                known.update(zip(new, normal, strict=True))
            return np.array([known[text] for text in given], object)
