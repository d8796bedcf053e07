"""FixedColumns: a cache of the untrained columns of text vectors."""

import threading

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.encoders.combined_encoder import CombinedEncoder
from keras_lstm_dssm.fingerprints import weights_hash
from keras_lstm_dssm.text import HashedTextCache, WordBatch
from keras_lstm_dssm.text.data_function import DataFunction
from keras_lstm_dssm.text.hashed_text_cache import (
    FIELD_TYPES,
    Fields,
    batch_of_fields,
    written,
)

MAX_BYTES = 1 << 28
"""Default size of a cache in bytes: 131,072 rows of 512 float32 numbers."""

_VECTOR = 64
"""A multiple of the count of numbers that one vector instruction reads."""


class FixedColumns:
    """Hashes texts, and looks up the untrained columns of their vectors.

    The last columns of a `CombinedEncoder`'s vector are a sketch of the words
    (`WordSketch`), which training does not change. A training reads the same
    texts in every epoch. The sketch of a text is computed when a batch first
    contains the text, and stored; later batches copy it.

    The cache is bounded: when it is full, the columns of texts that it does
    not hold are computed each time.

    Args:
        encoder: The encoder of the texts.
        cache: Cache of hashed texts with the encoder's hashing settings.
        max_bytes: Largest size of the stored columns.

    Example:
    >>> encoder = CombinedEncoder(cells=32, bag=32, sketch=63)
    >>> encoder.adapt(["steel hex bolt", "wood glue"])
    >>> columns = FixedColumns(encoder, encoder.trigrams.cache())
    >>> columns.distinct(tf.constant(["hex bolts"])).fixed.shape
    TensorShape([1, 64])
    """

    def __init__(
        self,
        encoder: CombinedEncoder,
        cache: HashedTextCache,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self.encoder = encoder
        self.cache = cache
        self._dtype = np.dtype(encoder.compute_dtype)
        self._width = encoder.dimension - encoder.trained_dimension
        ids = tf.TensorSpec([None], tf.int32)
        words = tf.TensorSpec([None, None], tf.int32)
        self._compute = tf.function(
            lambda *fields: self._of_words(WordBatch(*fields)),
            [ids, ids, ids, words, ids, ids, ids],
            autograph=False,
        )
        self._lock = threading.Lock()  # `tf.data` hashes several batches
        self._weights = ""
        self._most = max_bytes // (self._width * self._dtype.itemsize)
        self._empty()

    def forget_outdated(self) -> None:
        """Empties the cache if it was filled with other weights.

        The columns depend on the variables of `encoder.word_sketch` and on
        `encoder.long`, which `adapt` sets. Must be called whenever these may
        have changed, before further texts are hashed.
        """
        weights = weights_hash(
            [*self.encoder.word_sketch.variables, self.encoder.long]
        )
        with self._lock:
            if weights != self._weights:
                self._weights = weights
                self._empty()

    def _empty(self) -> None:
        self._stored = 0
        self._columns = np.empty((0, self._width), self._dtype)
        self._row_of_text = np.empty(0, np.int32)  # -1 for none

    def distinct(self, texts: tf.Tensor) -> WordBatch:
        """Hashes texts into a `WordBatch` that includes the field `fixed`.

        Args:
            texts: String tensor `[batch]`, which may be empty.
        """
        types = [*FIELD_TYPES, tf.as_dtype(self._dtype)]
        *fields, fixed = DataFunction(self._distinct, types)(texts)
        fixed.set_shape([None, self._width])
        return batch_of_fields(fields)._replace(fixed=fixed)

    def _distinct(self, texts: np.ndarray) -> tuple[np.ndarray, ...]:
        fields, numbers = self.cache.fields(texts)
        if numbers is None:
            return (*fields, self._computed(fields))
        with self._lock:
            return (*fields, self._cached(numbers))

    def _computed(self, fields: Fields) -> np.ndarray:
        columns: np.ndarray = self._compute(*map(tf.constant, fields)).numpy()
        return columns

    def _of_words(self, words: WordBatch) -> tf.Tensor:
        """Computes the untrained columns of texts, `(texts, width)`.

        A text gets the same bits whatever other texts are in its batch.
        Vector instructions round powers and roots differently from those for
        a single number, which TensorFlow uses for what does not fill a
        vector. A resumed run computes the columns in other batches, and must
        get equal bits.
        """
        sketch = self.encoder.sum_sketches(words)
        texts = tf.shape(sketch)[0]
        padded = tf.pad(sketch, [[0, -texts % _VECTOR], [0, 0]])
        return self.encoder.scale_sketches(padded)[:texts]

    def _cached(self, numbers: np.ndarray) -> np.ndarray:
        """Copies the columns of cached texts, computes and stores the others.

        Args:
            numbers: int `[texts]`, distinct numbers of hashed texts.

        Returns:
            `[texts, width]`.
        """
        short = numbers.max(initial=-1) + 1 - len(self._row_of_text)
        if short > 0:
            more = max(short, len(self._row_of_text))
            self._row_of_text = np.pad(
                self._row_of_text, (0, more), constant_values=-1
            )
        rows = self._row_of_text[numbers]
        new = rows < 0
        result = np.empty((len(numbers), self._width), self._dtype)
        result[~new] = self._columns[rows[~new]]
        if new.any():
            fields, order = self.cache.fields_of(numbers[new])
            computed = self._computed(fields)
            result[new] = computed[WordBatch(*fields).text_index]
            stored = order[: self._most - self._stored]
            self._columns = written(
                self._columns, self._stored, computed[: len(stored)]
            )
            end = self._stored + len(stored)
            self._row_of_text[stored] = np.arange(self._stored, end)
            self._stored = end
        return result
