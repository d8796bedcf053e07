"""`CombinedEncoder` concatenates vectors of an LSTM, of trigrams and of words.

`UntrainedColumnCache` caches the columns that training does not change.
"""

import functools
import itertools
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.encoders.text_encoder import (
    SKETCH,
    TOWERS,
    WORDS,
    Part,
    TextEncoder,
    columns,
    lstm_layers,
    run_network,
    scaled,
    sum_words,
    widths,
)
from keras_lstm_dssm.errors import InputError, check_at_least
from keras_lstm_dssm.fingerprints import weights_hash
from keras_lstm_dssm.layers.fixed_words import WordSketch
from keras_lstm_dssm.layers.letter_trigrams import TrigramEmbedding
from keras_lstm_dssm.layers.recurrent import Recurrent
from keras_lstm_dssm.ops import unit
from keras_lstm_dssm.registration import register
from keras_lstm_dssm.text.many_texts import (
    FIELD_SPECS,
    FIELD_TYPES,
    DataFunction,
    HashedTextCache,
    batch_of_fields,
    store_rows,
)
from keras_lstm_dssm.text.word_hashing import WordBatch, as_strings

_LONG_PERCENTILE = 95


@register
class CombinedEncoder(TextEncoder):
    """Concatenates three or four weighted vectors of a text.

        y = [ sqrt(a) unit(LSTM),  sqrt(b) unit(sum of W l(t)),
              sqrt(c) m unit(sketch),  sqrt(c) sqrt(1 - m^2) ],
        m = min(1, |sketch| / long) ^ (1 - p),    a + b + c = 1

    The cosine of two vectors is the sum of the cosines of their parts, weighted
    by a, b and c. The LSTM-RNN of Palangi et al. 2016 depends on the order of
    the words. W is a trained matrix, and l(t) are the counts of the letter
    trigrams of word t. The sum of W l(t) needs fewer clicks than the LSTM. The
    untrained sketch of the words (`WordSketch`) matches words that occur in no
    training click, such as part numbers. The weights a, b and c are not
    trained, because trained weights overfit.

    `long` is the 95th percentile of the norms of the titles' sketches. With
    p = 1, m is 1. Query encoders need p = 1. Document encoders may have p below
    1. Then m is below 1 if the norm of the sketch is below `long`. A p below 1
    weakens the normalisation by length, as BM25's parameter b does if b is
    below 1. The column sqrt(1 - m^2) gives the third part the length sqrt(c).

    With four shares there is a fourth part, `sqrt(d) unit(sum of r(w))`. The
    word vectors r(w) are fitted to a teacher, see `WordSumEncoder`.

    A subclass that overrides `compose` must also override `blocks`.

    The encoder is not in the paper. docs/results/best.md has the effect of each
    part.

    Args:
        cells: Number of LSTM cells, the width of the first part, default 96.
        bag: Width of the second part, default 96.
        sketch: Width of the sketch in the third part, default 511.
        shares: a, b, c and optionally d. They are divided by their sum.
            Default: equal a, b and c.
        length_norm: p, from 0 to 1. With 0, sketches with a norm below `long`
            are not normalised. With 1, all sketches are normalised. Default 1.
            Query encoders need 1.
        split: `"alphanumeric"` (default), `"space"` or `"stems"`, the rule that
            separates words; see `normalize_texts`.
        known_words: For the fourth part, see `WordSumEncoder`. Default 1.
        known_trigrams: For the fourth part, see `WordSumEncoder`. Default 1.
        units: Width of the fourth part. Default 1.
        peephole: See `LSTMEncoder`. Default `None`.
        forget_gate: See `LSTMEncoder`. Default `False`.
        truncate: See `LSTMEncoder`. Default `None`.
        **kwargs: Arguments of `TextEncoder`.

    Example:
    >>> encoder = CombinedEncoder(cells=32, bag=32, sketch=63)
    >>> encoder.adapt(["steel hex bolt", "wood glue"])
    >>> encoder.encode(["hex bolts"]).shape
    (1, 128)
    """

    def __init__(
        self,
        cells: int = 96,
        bag: int = 96,
        sketch: int = 511,
        shares: Sequence[float] = (1.0, 1.0, 1.0),
        length_norm: float = 1.0,
        split: str = "alphanumeric",
        known_words: int = 1,
        known_trigrams: int = 1,
        units: int = 1,
        peephole: str | None = None,
        forget_gate: bool = False,
        truncate: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(split=split, **kwargs)
        if len(shares) not in (3, 4) or min(shares) <= 0:
            raise InputError(
                f"shares must be three or four positive numbers, not {shares}"
            )
        if not 0 <= length_norm <= 1:
            raise InputError(
                f"length_norm must be from 0 to 1, not {length_norm}"
            )
        check_at_least(1, bag=bag)
        check_at_least(0, sketch=sketch)
        self.cells = cells
        self.bag = bag
        self.sketch = sketch
        self.shares = [float(share) for share in shares]
        self.length_norm = length_norm
        self.known_words = known_words
        self.known_trigrams = known_trigrams
        self.units = units
        self.peephole = peephole
        self.forget_gate = forget_gate
        self.truncate = truncate
        # Saved models depend on the order and the names of these layers.
        self.embedding, self.lstm = lstm_layers(self)
        self.word_rows = None
        if len(shares) == 4:
            self.word_rows = self._word_rows(known_words, known_trigrams, units)
        self.bag_embedding = self._embedding(bag, "bag_embedding")
        self.word_sketch = WordSketch(
            sketch, dtype=self.dtype_policy, name="word_sketch"
        )
        self.long = self.add_weight(
            shape=(), initializer="ones", trainable=False, name="long"
        )
        total = sum(self.shares)
        a, b, c, *d = [(share / total) ** 0.5 for share in self.shares]
        lstm = self.embedding, self.lstm
        parts = [
            Part(TOWERS, {"LSTM output": cells}, lstm, a, run_network),
            Part(TOWERS, {"trigram sum": bag}, [self.bag_embedding], b),
            Part(
                SKETCH,
                {"word sketch": sketch, "length norm": 1},
                [self.word_sketch],
                c,
                scale=self._scale_sketch,
            ),
        ]
        if self.word_rows:
            parts.append(Part(WORDS, {"word sum": units}, [self.word_rows], *d))
        self.dimension = sum(widths(parts).values())
        self.trained, self.untrained = tuple(parts[:2]), tuple(parts[2:])

    @property
    def vector_parts(self) -> tuple[Part, ...]:
        """The trained parts of the vectors, then the untrained parts."""
        # A subclass may override `compose`, so its parts are not known.
        if type(self) is not CombinedEncoder:
            return super().vector_parts
        return *self.trained, *self.untrained

    @property
    def networks(self) -> list[tuple[TrigramEmbedding, Recurrent]]:
        """The LSTM and its embedding."""
        return [(self.embedding, self.lstm)]

    @property
    def needs_adapt(self) -> bool:
        """Whether the statistics of `adapt` are missing."""
        without_long = self.length_norm < 1 and self.long.numpy() == 1
        return self.word_sketch.needs_adapt or bool(without_long)

    def adapt(  # type: ignore[override]
        self,
        texts: Sequence[str | bytes],
        batch_size: int = 2048,
        cache: HashedTextCache | None = None,
    ) -> None:
        """Computes the IDF of words from titles.

        If p is below 1, `adapt` also computes `long`. Call `adapt` before
        training, as `dssm.train` does. `texts` are the distinct titles of all
        documents. `cache` hashes the titles, and can be used again in training.
        """
        strings = as_strings(texts)
        distinct = (cache or self.trigrams.cache()).distinct

        def batches() -> Iterator[WordBatch]:
            for start in range(0, len(strings), batch_size):
                yield distinct(strings[start:][:batch_size])

        self.word_sketch.adapt(batches())
        if self.length_norm == 1:
            return
        norms = [
            tf.norm(sum_words(self.word_sketch, words), axis=-1)
            for words in batches()
        ]
        self.long.assign(np.percentile(np.concatenate(norms), _LONG_PERCENTILE))

    def training_cache(self, cache: HashedTextCache) -> Any:
        """Creates a cache of hashed texts with their untrained columns."""
        if type(self) is not CombinedEncoder:  # see `vector_parts`
            return cache
        return UntrainedColumnCache(self, cache)

    def compose(self, words: WordBatch, training: bool = False) -> tf.Tensor:
        """Computes the concatenated vectors of all parts."""
        return tf.concat(self.blocks(words, training), axis=-1)

    def blocks(
        self, words: WordBatch, training: bool = False
    ) -> tuple[tf.Tensor, ...]:
        """Computes two blocks: the trained and the untrained columns."""
        trained = columns(self.trained, words, training)
        if words.untrained is not None:
            return trained, words.untrained
        return trained, columns(self.untrained, words)

    def _scale_sketch(self, sketch: tf.Tensor) -> tf.Tensor:
        norm = tf.norm(sketch, axis=-1, keepdims=True)
        long = tf.cast(self.long.value, norm.dtype)
        m = tf.minimum(tf.math.divide_no_nan(norm, long), 1)
        m **= 1 - self.length_norm
        return tf.concat([unit(sketch) * m, tf.sqrt(1 - m**2)], axis=-1)


MAX_BYTES = 1 << 28
"""Default limit of a cache, in bytes: 131,072 rows of 512 float32 numbers."""

_PADDED_ROWS = 64  # a multiple of the SIMD width of any CPU


class UntrainedColumnCache:
    """Hashes texts, and caches the untrained columns of their vectors."""

    def __init__(
        self,
        encoder: CombinedEncoder,
        cache: HashedTextCache,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self.encoder = encoder
        self.cache = cache
        self._dtype = np.dtype(encoder.compute_dtype)
        self._width = sum(widths(encoder.untrained).values())
        self._lock = threading.Lock()  # `tf.data` hashes batches in parallel
        self._weights_hash = ""
        self._max_rows = max_bytes // (self._width * self._dtype.itemsize)
        self._clear()

    @functools.cached_property
    def _compute(self) -> Any:
        return tf.function(
            lambda *fields: self._compute_columns(WordBatch(*fields)),
            autograph=False,
        ).get_concrete_function(*FIELD_SPECS)

    def clear_if_stale(self) -> None:
        """Clears the cache if weights have changed. Call this after `adapt`."""
        variables = [
            variable
            for part in self.encoder.untrained
            for layer in part.layers
            for variable in layer.variables
        ]
        new_hash = weights_hash([*variables, self.encoder.long])
        with self._lock:
            if new_hash != self._weights_hash:
                self._weights_hash = new_hash
                self._clear()

    def _clear(self) -> None:
        self._columns = np.empty((0, self._width), self._dtype)
        self._row_of_text: dict[int, int] = {}

    def distinct(self, texts: tf.Tensor) -> WordBatch:
        """Hashes strings `[batch]`, and adds the untrained columns."""
        types = [*FIELD_TYPES, tf.as_dtype(self._dtype)]
        *fields, untrained = DataFunction(self._distinct, types)(texts)
        untrained.set_shape([None, self._width])
        return batch_of_fields(fields)._replace(untrained=untrained)

    def _distinct(self, texts: np.ndarray) -> tuple[np.ndarray, ...]:
        fields, numbers = self.cache.fields(texts)
        if numbers is None:
            return (*fields, self._compute(*fields).numpy())
        with self._lock:
            return (*fields, self._cached(numbers))

    def _compute_columns(self, words: WordBatch) -> tf.Tensor:
        # Without padding, scalar instructions may compute the last rows, and
        # round differently. A text must have equal columns in any batch.
        parts = self.encoder.untrained
        texts = tf.shape(words.lengths)[0]
        padding = [[0, -texts % _PADDED_ROWS], [0, 0]]
        padded = [tf.pad(part.compose(words), padding) for part in parts]
        return scaled(parts, padded)[:texts]

    def _cached(self, numbers: np.ndarray) -> np.ndarray:
        # `numbers` are the ids of the texts in the cache of hashed texts.
        row_of = self._row_of_text
        rows = np.array([row_of.get(n, -1) for n in numbers.tolist()], int)
        missing = rows < 0
        result = np.empty((len(numbers), self._width), self._dtype)
        result[~missing] = self._columns[rows[~missing]]
        if missing.any():
            fields, order = self.cache.fields_of(numbers[missing])
            computed = self._compute(*fields).numpy()
            result[missing] = computed[WordBatch(*fields).text_index]
            # If the cache is full, the columns of new texts are not stored.
            stored = order[: self._max_rows - len(row_of)].tolist()
            self._columns = store_rows(
                self._columns, len(row_of), computed[: len(stored)]
            )
            row_of |= zip(stored, itertools.count(len(row_of)), strict=False)
        return result
