"""Encodes texts in batches of similar lengths; caches hashed texts."""

import atexit
import functools
import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
import tensorflow as tf
from tqdm import tqdm

from keras_lstm_dssm.errors import check_at_least
from keras_lstm_dssm.text.word_hashing import (
    WordBatch,
    distinct_words,
    normalize_texts,
    trigram_ids,
)
from lstm_dssm_client.signatures import as_bytes, slices_of_size

_BATCH_BYTES = 1 << 19  # most bytes in a batch of several texts
_WORKERS = 2  # one thread hashes a batch while the other encodes a batch

B = TypeVar("B")
R = TypeVar("R")


def run_batches(
    function: Callable[[B], R],
    batches: Sequence[B],
    label: str,
    progress: bool,
    done: int = 0,  # batches computed before, for the progress bar
) -> Iterator[tuple[B, R]]:
    """Yields each batch with its result; two threads compute the results."""
    with ThreadPoolExecutor(_WORKERS) as pool:
        bar = tqdm(
            pool.map(function, batches),
            label,
            done + len(batches),
            leave=False,  # frees the line for the progress bar of `fit`
            initial=done,
            disable=not progress,
        )
        yield from zip(batches, bar, strict=True)


def encode_in_batches(
    encode: Callable[[tf.Tensor], tf.Tensor],
    texts: Any,
    batch_size: int,
    progress: bool,
) -> np.ndarray:
    """Encodes texts with `encode`, a thread-safe function of strings `[n]`."""

    def encode_strings(strings: list[bytes]) -> np.ndarray:
        return encode(tf.constant(strings, tf.string, [len(strings)])).numpy()

    return arrays_in_batches(encode_strings, texts, batch_size, progress)


def arrays_in_batches(
    encode: Callable[[list[bytes]], np.ndarray],
    texts: Any,
    batch_size: int,
    progress: bool,
) -> np.ndarray:
    """Encodes texts in batches of similar length; two threads call `encode`."""
    strings = as_bytes(texts)
    lengths = np.array([len(text) for text in strings], int)
    order = np.argsort(lengths, kind="stable")
    batches = [
        order[rows]
        for rows in slices_of_size(lengths[order], batch_size, _BATCH_BYTES)
    ]
    if len(batches) <= 1:
        return encode(strings)

    def encode_rows(rows: np.ndarray) -> np.ndarray:
        return encode([strings[row] for row in rows])

    first = encode_rows(batches[0])
    result = np.empty((len(strings), first.shape[1]), first.dtype)
    result[batches[0]] = first
    results = run_batches(encode_rows, batches[1:], "encode", progress, 1)
    for rows, vectors in results:
        result[rows] = vectors
    return result


def score_in_batches(
    score: Callable[[np.ndarray], np.ndarray],  # int indices [n] -> scores [n]
    lengths: list[int],
    batch_size: int,
    progress: bool = False,
) -> np.ndarray:
    """Scores examples in batches of similar length; two threads run `score`."""
    check_at_least(1, batch_size=batch_size)
    # Short examples come last, so that both threads end at about the same time.
    order = np.argsort([-length for length in lengths], kind="stable")
    batches = [
        order[start : start + batch_size]
        for start in range(0, len(order), batch_size)
    ]
    if not batches:
        return np.zeros(0, np.float32)
    if len(batches) == 1:  # a thread pool would take longer than scoring
        scores = score(order)
    else:
        results = run_batches(score, batches, "score", progress)
        scores = np.concatenate([batch_scores for _, batch_scores in results])
    result = np.empty_like(scores)
    result[order] = scores
    return result


class DataFunction:
    """Runs a Python function in `tf.data` without blocking process exit."""

    def __init__(
        self, function: Callable[..., Any], types: tf.DType | Sequence[tf.DType]
    ) -> None:
        self._function = function
        self._types = types

    def __call__(self, *inputs: tf.Tensor) -> Any:
        """Applies the function to tensors; the results have no static shape."""
        return tf.numpy_function(
            self._call, inputs, self._types, stateful=False
        )

    def _call(self, *arrays: Any) -> Any:
        with _CALLS:
            return self._function(*arrays)


class _Calls:
    """Counts running calls of all `DataFunction`s; waits for them at exit."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running = 0
        self._any_begun = False
        self._exiting = False
        # At exit the interpreter stops threads, and `tf.data` would wait
        # forever for a call in a stopped thread. `_wait` lets the calls end.
        atexit.register(self._wait)

    def __enter__(self) -> None:
        with self._changed:
            if self._exiting:
                # Ends the dataset. TensorFlow would log any other error.
                raise StopIteration
            self._any_begun = True
            self._running += 1

    def __exit__(self, *_: Any) -> None:
        with self._changed:
            self._running -= 1
            self._changed.notify_all()

    def _wait(self) -> None:
        with self._changed:
            self._exiting = True
            self._changed.wait_for(lambda: not self._running)
        if self._any_begun:
            time.sleep(0.1)  # lets calls that begin now get `StopIteration`


_CALLS = _Calls()


MAX_BYTES = 1 << 25
"""Default limit of the texts in a cache, in bytes: some 500,000 titles."""

Fields = tuple[np.ndarray, ...]
"""The fields of a `WordBatch`, from `trigrams` to `trigram_order`, int32."""

FIELD_TYPES = [tf.int32] * 7
FIELD_SPECS = [
    tf.TensorSpec([None] * rank, tf.int32) for rank in (1, 1, 1, 2, 1, 1, 1)
]


@functools.cache
def _traced(function: Callable[..., Any], *rules: Any) -> Any:
    """Traces `function(texts, *rules)` for texts `[n]`; caches the graph."""
    return tf.function(
        lambda texts: function(texts, *rules), autograph=False
    ).get_concrete_function(tf.TensorSpec([None], tf.string))


class HashedTextCache:
    """Hashes texts as `LetterTrigrams.distinct` does, and caches their words.

    The texts in the cache have at most `max_bytes` bytes in total. The cache
    needs six times as much memory. A full cache takes no new texts.
    """

    def __init__(
        self,
        oov_buckets: int = 0,
        max_words: int | None = None,
        split: str = "space",
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self.oov_buckets = oov_buckets
        self.max_words = max_words
        self.split = split
        self._bytes_left = max_bytes
        self._lock = threading.Lock()  # `tf.data` uses several threads
        # A text id is the index of a row of `_words_of_text`, and a word id is
        # the index of a row of `_trigrams_of_word`.
        self._id_of_text: dict[bytes, int] = {}
        self._id_of_normalized: dict[bytes, int] = {}
        self._id_of_word: dict[bytes, int] = {}
        self._words_of_text = _Rows()
        self._trigrams_of_word = _Rows()

    @functools.cached_property
    def _normalize(self) -> Any:
        return _traced(normalize_texts, self.max_words, self.split)

    def distinct(self, texts: tf.Tensor) -> WordBatch:
        """Hashes strings `[batch]` into a `WordBatch`, also in `tf.data`."""
        hashed = DataFunction(lambda texts: self.fields(texts)[0], FIELD_TYPES)
        return batch_of_fields(hashed(texts))

    def fields(self, texts: np.ndarray) -> tuple[Fields, np.ndarray | None]:
        """Hashes an array of `bytes`; returns fields, and distinct texts' ids.

        The ids are `None` if the cache has no room for the new texts.
        """
        with self._lock:
            ids = self._text_ids(texts.tolist())
            if ids is not None:
                return self._batch(ids)
        batch = self._uncached(tf.constant(texts))
        fields = [field.numpy() for field in batch[:6]]
        order = _stable_argsort(fields[1], len(fields[0]))
        return (*fields, order), None

    def _uncached(self, texts: tf.Tensor) -> WordBatch:
        rules = self.oov_buckets, self.max_words, self.split
        return _traced(distinct_words, *rules)(texts)

    def fields_of(self, ids: np.ndarray) -> tuple[Fields, np.ndarray]:
        """Returns the same as `fields`, given the ids of cached texts."""
        with self._lock:
            return self._batch(ids)

    def _batch(self, text_ids: np.ndarray) -> tuple[Fields, np.ndarray]:
        """Returns fields and distinct ids; texts with many words come first."""
        distinct, index = _unique(text_ids, len(self._words_of_text))
        lengths = self._words_of_text.lengths(distinct)
        order = np.argsort(-lengths, kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        lengths, distinct = lengths[order], distinct[order]
        words, _ = self._words_of_text.take(distinct)
        words, word_index = _unique(words, words.max(initial=-1) + 1)
        *trigram_fields, trigram_order = self._trigrams(words)
        padded = np.zeros((len(lengths), max([1, *lengths[:1]])), np.int32)
        padded[np.arange(padded.shape[1]) < lengths[:, np.newaxis]] = word_index
        text_index = rank[index].astype(np.int32)
        text_fields = padded, lengths, text_index
        return (*trigram_fields, *text_fields, trigram_order), distinct

    def _trigrams(self, words: np.ndarray) -> Fields:
        """Returns all fields of a `WordBatch` that refer to trigrams."""
        trigrams, word_of_trigram = self._trigrams_of_word.take(words)
        trigrams, index = _unique(trigrams, trigrams.max(initial=-1) + 1)
        order = _stable_argsort(index, len(trigrams))
        return trigrams, index, word_of_trigram, order

    def _text_ids(self, texts: list[bytes]) -> np.ndarray | None:
        """Caches new texts; returns all ids, or `None` if there is no room."""
        known = self._id_of_text
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            self._bytes_left -= sum(map(len, new))
            if self._bytes_left < 0:
                self._bytes_left = 0
                return None
            normal = self._normalize(tf.constant(new)).numpy().tolist()
            known.update(zip(new, self._cache_words(normal), strict=True))
        return np.array([known[text] for text in texts], np.int32)

    def _cache_words(self, texts: list[bytes]) -> list[int]:
        """Caches the words of normalised texts; returns the texts' ids."""
        if new := _assign_ids(self._id_of_normalized, texts):
            words = [text.split(b" ")[: self.max_words] for text in new]
            ids = self._word_ids(list(itertools.chain.from_iterable(words)))
            lengths = np.array([*map(len, words)])
            self._words_of_text.add(np.array(ids), lengths)
        return [self._id_of_normalized[text] for text in texts]

    def _word_ids(self, words: list[bytes]) -> list[int]:
        """Caches the trigrams of new words; returns the ids of the words."""
        if distinct := _assign_ids(self._id_of_word, words):
            trigrams = _traced(trigram_ids, self.oov_buckets)
            ids, word = trigrams(tf.constant(distinct))
            self._trigrams_of_word.add(
                ids.numpy(), np.bincount(word, minlength=len(distinct))
            )
        return [self._id_of_word[word] for word in words]


def batch_of_fields(fields: Sequence[tf.Tensor]) -> WordBatch:
    """Makes a `WordBatch` from seven tensors, and sets their static ranks."""
    for field, spec in zip(fields, FIELD_SPECS, strict=True):
        field.set_shape(spec.shape)
    return WordBatch(*fields)


class _Rows:
    """A ragged array of integers, to which rows can be added."""

    def __init__(self) -> None:
        self._values = np.empty(0, np.int32)
        # Row i is `self._values[self._ends[i] : self._ends[i + 1]]`.
        self._ends = np.zeros(1, np.int64)
        self._rows = 0

    def __len__(self) -> int:
        return self._rows

    def add(self, values: np.ndarray, lengths: np.ndarray) -> None:
        """Adds rows, given their concatenated values and their lengths."""
        start = int(self._ends[self._rows])
        self._values = store_rows(self._values, start, values)
        ends = start + np.cumsum(lengths)
        self._ends = store_rows(self._ends, self._rows + 1, ends)
        self._rows += len(lengths)

    def lengths(self, rows: np.ndarray) -> np.ndarray:
        return (self._ends[rows + 1] - self._ends[rows]).astype(np.int32)

    def take(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the values of rows, and for each value an index in `rows`."""
        lengths = self.lengths(rows)
        index = np.repeat(np.arange(len(rows), dtype=np.int32), lengths)
        # Position in `_values` = position in the result + `shift` of the row.
        shift = self._ends[rows] - (np.cumsum(lengths) - lengths)
        positions = np.arange(len(index)) + shift[index]
        return self._values[positions], index


def store_rows(array: np.ndarray, start: int, values: np.ndarray) -> np.ndarray:
    """Writes `values` from row `start` on; returns `array` or a larger copy."""
    end = start + len(values)
    if end > len(array):
        larger = np.empty((2 * end, *array.shape[1:]), array.dtype)
        larger[:start] = array[:start]
        array = larger
    array[start:end] = values
    return array


def _unique(values: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Does what `tf.unique` does, for int32 numbers below `size`."""
    positions = np.arange(len(values), dtype=np.int32)
    first = np.empty(size, np.int32)
    # For a repeated value NumPy keeps the position that is assigned last. The
    # positions are reversed, so the value's first position is assigned last.
    first[values[::-1]] = positions[::-1]
    first = first[values]
    is_first = first == positions
    index_of_first = np.cumsum(is_first, dtype=np.int32) - np.int32(1)
    return values[is_first], index_of_first[first]


def _stable_argsort(values: np.ndarray, size: int) -> np.ndarray:
    """Computes the indices that sort numbers below `size`, int32 `[n]`."""
    if size <= 1 << 16:  # NumPy has a fast radix sort only for 16 bits
        values = values.astype(np.uint16)
    return np.argsort(values, kind="stable").astype(np.int32)


def _assign_ids(id_of: dict[bytes, int], strings: list[bytes]) -> list[bytes]:
    """Assigns consecutive ids to new strings; returns the new strings."""
    new = [string for string in dict.fromkeys(strings) if string not in id_of]
    id_of.update((string, n) for n, string in enumerate(new, len(id_of)))
    return new


class NormalizedTextCache:
    """Normalises texts as `normalize_texts` does, and caches the results."""

    def __init__(
        self, split: str = "space", max_bytes: int = MAX_BYTES
    ) -> None:
        self._bytes_left = max_bytes
        self._normalize = _traced(normalize_texts, None, split)
        self._lock = threading.Lock()  # `tf.data` calls from several threads
        self._normalized: dict[bytes, bytes] = {}

    def __call__(self, texts: tf.Tensor) -> tf.Tensor:
        """Normalises strings of any shape, eagerly or in `tf.data`."""
        normal = DataFunction(self._normal, tf.string)
        flat = normal(tf.reshape(texts, [-1]))
        return tf.reshape(flat, tf.shape(texts))

    def _normal(self, texts: np.ndarray) -> np.ndarray:
        keys = texts.tolist()
        with self._lock:
            cached, fresh = self._normalized, {}
            new = [text for text in dict.fromkeys(keys) if text not in cached]
            if new:
                normal = self._normalize(tf.constant(new)).numpy().tolist()
                fresh = dict(zip(new, normal, strict=True))
                self._bytes_left = max(0, self._bytes_left - sum(map(len, new)))
                if self._bytes_left:
                    cached.update(fresh)
            # `or` works: a text without words is normalised to `#`, not to "".
            return np.array([cached.get(k) or fresh[k] for k in keys], object)


class RepresentedTexts:
    """Caches the arrays that represent texts in a pair scorer.

    The cache is emptied if one of the `weights` changes. Threads may share the
    cache.
    """

    def __init__(
        self,
        represent: Callable[[list[bytes]], Sequence[np.ndarray]],
        weights: Sequence[Any],
        max_bytes: int = 1 << 28,
    ) -> None:
        self._represent = represent
        self._weights = weights
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._values: list[np.ndarray] = []
        self._cached: dict[bytes, np.ndarray] = {}
        self._bytes_left = 0

    def __call__(self, texts: list[bytes]) -> list[np.ndarray]:
        """Returns the array of each text, `[rows, width]`."""
        with self._lock:
            self._check_weights()
            cached = self._cached
            represented: dict[bytes, Any] = {t: cached.get(t) for t in texts}
        new = [text for text, rows in represented.items() if rows is None]
        if new:
            rows_of_new = self._represent(new)
            represented.update(zip(new, rows_of_new, strict=True))
            size = sum(rows.nbytes for rows in rows_of_new)
            with self._lock:
                if cached is self._cached and size <= self._bytes_left:
                    self._bytes_left -= size
                    cached.update(zip(new, rows_of_new, strict=True))
        return [represented[text] for text in texts]

    def _check_weights(self) -> None:
        # The arrays of `self._values` share the memory of the weights. While
        # these arrays exist, TensorFlow does not overwrite the memory. A weight
        # at the same address as before is therefore unchanged.
        values = [np.asarray(tf.convert_to_tensor(w)) for w in self._weights]
        unchanged = len(values) == len(self._values) and all(
            new.ctypes.data == old.ctypes.data or np.array_equal(new, old)
            for new, old in zip(values, self._values, strict=True)
        )
        self._values = values
        if not unchanged:
            self._cached = {}
            self._bytes_left = self._max_bytes
