"""`tf.data` batches of (query, document) strings from click logs.

A batch can also have negatives for each click, and the logarithm of each
title's share of the clicks.
"""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.data.click_log import ClickLog, Pair, line_field, weight_of
from keras_lstm_dssm.errors import InputError, check_at_least
from keras_lstm_dssm.text.many_texts import NormalizedTextCache
from keras_lstm_dssm.text.word_hashing import (
    as_strings,
    normalize,
    normalize_texts,
)

SHUFFLE_BUFFER = 100_000
"""Default number of lines of a log that are shuffled in memory."""

_LINES_PER_ELEMENT = 8192


def training_batches(
    log: ClickLog,
    batch_size: int,
    *,
    epochs: int,
    seed: int,
    first_step: int = 0,
    shuffle_buffer: int = SHUFFLE_BUFFER,
    steps_per_epoch: int | None = None,
) -> tf.data.Dataset:
    """Streams a click log in a new random order in each epoch.

    A log of up to `shuffle_buffer` lines is shuffled as a whole. From a longer
    log, random blocks of 8 or more consecutive lines are read into a buffer,
    and the buffer is shuffled. Each batch therefore draws from the whole log,
    even if the log is sorted.

    The order depends only on the log, `shuffle_buffer`, `seed` and the epoch.
    With `first_step=n` the dataset leaves out exactly the first n batches, so
    that a training can be resumed.

    Args:
        log: The click log to read.
        batch_size: The number of pairs in a batch. The last batch of an epoch
            may be smaller.
        epochs: The number of passes over the log.
        seed: Any int; another seed gives another order.
        first_step: The number of batches to skip at the start. Default 0.
        shuffle_buffer: The number of lines shuffled in memory. Default 100,000.
        steps_per_epoch: The number of batches in an epoch. Each epoch then
            reads a new random part of the log. Default `None`: the whole log,
            in ceil(log.count() / batch_size) batches.

    Returns:
        A dataset of (query, document), string tensors of shape [batch]. The
        strings have no surrounding white space. If the log has weights
        (`ClickLog.weighted`), a dataset of (query, document, {"sample_weight":
        float32 [batch]}). The cardinality over all epochs is known. Bad lines
        that `ClickLog` allows are left out.

    Raises:
        InputError: A file of the log is wrong (see `ClickLog`), or
            `shuffle_buffer` is less than 1; `steps_per_epoch` is larger than
            the number of batches in the log.

    Example:
        >>> batches = training_batches(
        ...     log, 256, epochs=5, seed=1
        ... )  # doctest: +SKIP
        >>> model.fit(batches)  # doctest: +SKIP
    """
    check_at_least(1, shuffle_buffer=shuffle_buffer)
    blocks = log.blocks()
    whole = -(-log.count() // batch_size)
    per_epoch = steps_per_epoch or whole
    if per_epoch > whole:
        raise InputError(
            f"steps_per_epoch is {per_epoch}: expected at most {whole}, the"
            f" batches of {batch_size} in {log.count():,} clicks"
        )
    first_epoch, skipped_batches = divmod(first_step, per_epoch)

    def shuffled(epoch: int, skipped_lines: int) -> Iterator[np.ndarray]:
        order = permutation(len(blocks), seed, epoch)
        buffers = _split(order, log.count(), shuffle_buffer)
        last_line = per_epoch * batch_size
        for number, buffer in enumerate(buffers, 1):
            count = int(blocks.clicks[buffer].sum())
            if skipped_lines < min(count, last_line):
                lines = _array(blocks.read(np.sort(buffer)))
                shuffle = permutation(count, seed, epoch, number)
                yield lines[shuffle[skipped_lines:last_line]]
            skipped_lines = max(0, skipped_lines - count)
            last_line -= count

    def shuffled_epochs() -> Iterator[Iterator[np.ndarray]]:
        for epoch in range(first_epoch, epochs):
            skipped = skipped_batches if epoch == first_epoch else 0
            yield shuffled(epoch, skipped * batch_size)

    steps = max(0, epochs * per_epoch - first_step)
    return _pair_batches(shuffled_epochs, batch_size, steps, log.weighted)


def evaluation_batches(
    pairs: Iterable[Pair] | ClickLog, batch_size: int
) -> tf.data.Dataset:
    """Batches pairs in their order; a `ClickLog` is streamed from disk.

    Returns:
        A dataset of (query, document), string tensors of shape [batch]. If the
        log has weights, the dataset has weights too, see `training_batches`.

    Raises:
        InputError: A file of the log is wrong (see `ClickLog`).

    Example:
    >>> pairs = [Pair("bolt", "hex bolt"), Pair("glue", "wood glue")]
    >>> queries, documents = next(iter(evaluation_batches(pairs, batch_size=2)))
    >>> documents.numpy().tolist()
    [b'hex bolt', b'wood glue']
    """
    if isinstance(pairs, ClickLog):
        blocks, count = pairs.blocks(), pairs.count()

        def in_order() -> Iterator[Iterator[np.ndarray]]:
            buffers = _split(np.arange(len(blocks)), count, SHUFFLE_BUFFER)
            yield (_array(blocks.read(buffer)) for buffer in buffers)

        steps = -(-count // batch_size)
        return _pair_batches(in_order, batch_size, steps, pairs.weighted)
    pairs = list(pairs)
    columns = tuple(
        tf.constant([pair[column] for pair in pairs], tf.string)
        for column in (0, 1)
    )
    return tf.data.Dataset.from_tensor_slices(columns).batch(batch_size)


def _split(blocks: np.ndarray, lines: int, buffer: int) -> list[np.ndarray]:
    """Splits block indices into even groups of at most about `buffer` lines."""
    return np.array_split(blocks, min(-(-lines // buffer), len(blocks)))


def permutation(count: int, *seeds: int) -> np.ndarray:
    """Permutes 0 .. count - 1, identically in every version of NumPy."""
    return np.argsort(random_bits(count, *seeds), kind="stable")


def random_bits(count: int, *seeds: int) -> np.ndarray:
    """Draws uint64 numbers, identically in every version of NumPy."""
    # A new version of NumPy may change its distributions, but not its raw bits.
    return np.random.PCG64([seed % 2**64 for seed in seeds]).random_raw(count)


def generated_batches(
    arrays: Callable[[], Iterator[np.ndarray]],
    spec: tf.TensorSpec,
    batch_size: int,
    batch_of_rows: Callable[[tf.Tensor], tuple[Any, ...]],
    count: int,
) -> tf.data.Dataset:
    """Divides generated arrays into `count` batches of consecutive rows."""

    def cut(rows: tf.Tensor) -> tf.data.Dataset:
        size = tf.shape(rows, tf.int64)[0]
        starts = tf.data.Dataset.range(0, size, batch_size)
        return starts.map(lambda start: rows[start : start + batch_size])

    return (
        tf.data.Dataset.from_generator(arrays, output_signature=spec)
        .flat_map(cut)
        .map(batch_of_rows, tf.data.AUTOTUNE)
        .prefetch(tf.data.AUTOTUNE)
        .apply(tf.data.experimental.assert_cardinality(count))
    )


def _array(lines: list[bytes]) -> np.ndarray:
    return np.array(lines, dtype=object)


def _pair_batches(
    epochs: Callable[[], Iterator[Iterator[np.ndarray]]],
    batch_size: int,
    count: int,
    weighted: bool,
) -> tf.data.Dataset:
    """Makes `count` batches; `epochs()` yields each epoch's arrays of lines."""
    columns = 3 if weighted else 2
    # Calls from TensorFlow to Python are slow. So a call gets several batches.
    element_size = batch_size * max(1, _LINES_PER_ELEMENT // batch_size)

    def fields(lines: np.ndarray) -> np.ndarray:
        # `ClickLog.files` has checked that each line has one or two tabs.
        texts = [
            line_field(field)
            for line in lines.tolist()
            for field in (*line.split(b"\t"), b"1")[:columns]
        ]
        return _array(texts).reshape(-1, columns)

    def batch(rows: tf.Tensor) -> tuple[Any, ...]:
        pair = rows[:, 0], rows[:, 1]
        if not weighted:
            return pair
        return *pair, {"sample_weight": tf.strings.to_number(rows[:, 2])}

    def elements() -> Iterator[np.ndarray]:
        for epoch in epochs():
            buffered = _array([])
            for lines in epoch:
                buffered = np.concatenate([buffered, lines])
                while len(buffered) >= element_size:
                    yield fields(buffered[:element_size])
                    buffered = buffered[element_size:]
            if len(buffered):
                yield fields(buffered)

    spec = tf.TensorSpec([None, columns], tf.string)
    return generated_batches(elements, spec, batch_size, batch, count)


class DrawnNegatives(ABC):
    """Base of the classes that draw k negatives for each click of a batch."""

    def __init__(self, k: int, seed: int) -> None:
        check_at_least(1, k=k)
        self.k = k
        self.seed = int(np.uint64(int(seed) % 2**64).astype(np.int64))

    @abstractmethod
    def _draw(
        self, step: tf.Tensor, query: tf.Tensor, document: tf.Tensor
    ) -> tf.Tensor:
        """Draws k titles for each click of a batch: strings `[batch, k]`."""

    def attach(
        self, batches: tf.data.Dataset, first_step: int | None = 0
    ) -> tf.data.Dataset:
        """Adds k drawn titles for each click of a dataset.

        Args:
            batches: Dataset of `(query, document)`, strings `[batch]`, or of
                `(query, document, {"sample_weight": ..., "negatives": ...})`.
                Negatives that a batch already has stay in front.
            first_step: The index of the first batch in the whole run. Default
                0. With `None`, each pass over the dataset (each epoch of `fit`)
                draws new negatives.

        Returns:
            A dataset of `(query, document, {..., "negatives": ...})`. The
            negatives are strings `[batch, k]`, or `[batch, n + k]` if batches
            already have n negatives.
        """
        steps = (
            tf.data.Dataset.random(self.seed, rerandomize_each_iteration=True)
            if first_step is None
            else tf.data.Dataset.counter(first_step)
        )

        def with_negatives(step: tf.Tensor, batch: Any) -> tuple[Any, ...]:
            query, document, *rest = batch
            extras = dict(*rest)
            drawn = self._draw(step, query, document)
            if "negatives" in extras:
                drawn = tf.concat([extras["negatives"], drawn], axis=1)
            return query, document, {**extras, "negatives": drawn}

        return tf.data.Dataset.zip(steps, batches).map(
            with_negatives, tf.data.AUTOTUNE
        )


def _row_table(keys: Iterable[str | bytes]) -> tf.lookup.StaticHashTable:
    """Makes a table that maps each key to its index, and other texts to -1."""
    texts = as_strings(keys)
    indices = tf.range(len(texts))
    return tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(texts, indices), -1
    )


class GivenNegatives(DrawnNegatives):
    """Adds negatives, drawn from titles that you give for each query.

    For example, give titles that people judged not relevant, or titles that
    `mine_negatives` found in the log. `TwoTower` compares the clicked title
    with the drawn negatives and with the negatives from the batch.

    For each click, k titles of the click's query are drawn with replacement. If
    a query has no titles, k copies of the clicked title are taken; the loss
    ignores the copies. The draw depends only on the seed and the batch's index.

    Args:
        titles: Query -> the titles to draw from. Queries with equal normalised
            words count as equal.
        k: The number of negatives for each click.
        seed: Any int; another seed gives another draw. Default 0.
        split: How words are separated (`normalize_texts`). Default `"space"`.
        normalized: A cache of normalised queries to share with other objects;
            it must have the same `split`. Default `None`: a new cache.

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
        super().__init__(k, seed)
        groups: dict[str, list[str]] = {}
        queries = normalize(list(titles), split)
        for words, group in zip(queries, titles.values(), strict=True):
            if group:
                groups.setdefault(words, []).extend(group)
        if not groups:
            raise InputError("no query has a negative: expected one or more")
        self.split = split
        self._normalized = normalized or NormalizedTextCache(split)
        counts = [len(group) for group in groups.values()]
        index: dict[str, int] = {}
        self._indices = tf.constant(
            [
                index.setdefault(title, len(index))
                for group in groups.values()
                for title in group
            ],
            tf.int32,
        )
        self._titles = as_strings(list(index))
        # In `_counts` and `_starts`, item 0 is for queries without titles.
        self._counts = tf.constant([0, *counts], tf.int32)
        self._starts = tf.constant(np.cumsum([0, 0, *counts[:-1]]), tf.int32)
        self._rows = _row_table(groups)

    def _draw(
        self, step: tf.Tensor, query: tf.Tensor, document: tf.Tensor
    ) -> tf.Tensor:
        row = self._rows.lookup(self._normalized(query)) + 1
        count = tf.gather(self._counts, row)[:, tf.newaxis]
        share = tf.random.stateless_uniform(
            [tf.size(row), self.k], [self.seed, step]
        )
        drawn = tf.cast(share * tf.cast(count, tf.float32), tf.int32)
        # The product may be rounded up to `count`.
        drawn = tf.minimum(drawn, tf.maximum(count - 1, 0))
        position = tf.gather(self._starts, row)[:, tf.newaxis] + drawn
        position = tf.minimum(position, tf.size(self._indices) - 1)
        titles = tf.gather(self._titles, tf.gather(self._indices, position))
        return tf.where(count > 0, titles, document[:, tf.newaxis])


class CorpusNegatives(DrawnNegatives):
    """Adds negatives that are drawn from all training titles.

    Palangi et al. 2016 draw the n = 4 negatives of a click at random from all
    documents. `TwoTower` with `negatives="corpus"` compares the clicked title
    with these negatives only. `dssm.train` attaches the negatives by itself.

    For each click, k titles are drawn with replacement, uniformly, from all
    titles except the clicked title. Other titles that were clicked for the
    query can be drawn. The draw depends only on the seed and the batch's index.

    Args:
        titles: Titles to draw from. Titles that have equal normalised words
            count as one title.
        k: The number of negatives for each click, n in the paper. Default 4.
        seed: Any int; another seed gives another draw. Default 0.
        split: How words are separated (`normalize_texts`). Default `"space"`.

    Attributes:
        distinct: The number of titles that differ in their normalised words.

    Raises:
        InputError: k is less than 1, or there is no title.

    Example:
    >>> negatives = CorpusNegatives(log.documents())
    >>> batches = training_batches(log, 256, epochs=1, seed=0)
    >>> recipe = dssm.PRESETS["lstm_96"].replace(negatives="corpus")
    >>> model = dssm.build_model(recipe)
    >>> model.compile(dssm.NesterovMomentum(0.1), dssm.CosineSoftmax(10.0))
    >>> model.fit(negatives.attach(batches))
    """

    def __init__(
        self,
        titles: tf.Tensor | Iterable[str | bytes],
        k: int = 4,
        seed: int = 0,
        split: str = "space",
    ) -> None:
        super().__init__(k, seed)
        texts = as_strings(titles)
        if not len(texts):
            raise InputError(
                "found no title: expected one or more to draw from"
            )
        words = normalize_texts(texts, None, split).numpy().tolist()
        distinct = dict(zip(words, texts.numpy().tolist(), strict=True))
        self.distinct = len(distinct)
        self._titles = as_strings(distinct.values())
        self._rows = _row_table(distinct)
        self._normalized = NormalizedTextCache(split)

    def _draw(
        self, step: tf.Tensor, query: tf.Tensor, document: tf.Tensor
    ) -> tf.Tensor:
        row = self._rows.lookup(self._normalized(document))[:, tf.newaxis]
        is_known = tf.cast(row >= 0, tf.int32)
        count = tf.size(self._titles) - is_known
        bits = tf.random.stateless_uniform(
            [tf.size(row), self.k], [self.seed, step], None, None, tf.int64
        )
        drawn = tf.cast(
            bits % tf.cast(tf.maximum(count, 1), tf.int64), tf.int32
        )
        # Drawn rows skip the row of the clicked title.
        drawn += is_known * tf.cast(drawn >= row, tf.int32)
        drawn = tf.minimum(drawn, tf.size(self._titles) - 1)
        titles = tf.gather(self._titles, drawn)
        # Without other titles, k copies of the clicked title are taken.
        # The loss ignores the copies.
        return tf.where(count > 0, titles, document[:, tf.newaxis])


_TITLES_AT_ONCE = 100_000


class ClickFrequencies:
    """Adds `log_q`, the logarithm of each title's share of clicks, to batches.

    Popular titles are in-batch negatives more often than other titles. So
    training would lower the scores of popular titles. To correct this,
    `TwoTower` subtracts `log_q` from the scores in training (Bengio and Senecal
    2008; Yi et al. 2019).

    Clicks are counted in buckets, by a hash of the title's normalised words,
    so that memory does not grow with the log. Titles in one bucket share a
    count.

    Args:
        titles: The clicked title of each click.
        buckets: The number of counters, 8 bytes each. Default 2^20.
        split: How words are separated (`normalize_texts`). Default `"space"`.
        weights: The weight of each click. Default `None`: 1 for each click.

    Attributes:
        counts: int64 `[buckets]`, the number of clicks in each bucket. With
            `weights`: float64 `[buckets]`, the sum of the clicks' weights.
        log_q: float32 `[buckets]`, logarithm of each bucket's share of clicks.

    Example:
    >>> frequencies = ClickFrequencies.from_log(log)
    >>> batches = training_batches(log, 256, epochs=1, seed=0)
    >>> model.fit(frequencies.attach(batches))
    """

    def __init__(
        self,
        titles: Iterable[str],
        buckets: int = 2**20,
        split: str = "space",
        weights: Iterable[float] | None = None,
    ) -> None:
        self.buckets = buckets
        self.split = split
        self._normalized = NormalizedTextCache(split)
        counts = np.zeros(buckets, np.int64 if weights is None else np.float64)
        titles = iter(titles)
        weights = iter(() if weights is None else weights)
        while block := list(itertools.islice(titles, _TITLES_AT_ONCE)):
            hashed = self._hash(as_strings(block)).numpy()
            block_weights = list(itertools.islice(weights, len(block))) or None
            counts += np.bincount(hashed, block_weights, minlength=buckets)
        self.count(counts)

    @classmethod
    def from_log(
        cls, log: ClickLog, split: str = "space"
    ) -> "ClickFrequencies":
        """Counts the clicks of a log, by weight if the log has weights."""
        titles = (pair.document for pair in log)
        weights = None
        if log.weighted:
            weights = (weight_of(line) for _, line in log.lines())
        return cls(titles, split=split, weights=weights)

    def count(self, counts: np.ndarray) -> None:
        """Sets `counts`, int or float `[buckets]`, and computes `log_q`."""
        self.counts = counts
        # A bucket counts as half a click or more, because an unclicked title,
        # such as a mined negative, can be in an empty bucket.
        share = np.maximum(counts, 0.5) / max(1, counts.sum())
        self.log_q = tf.constant(np.log(share), tf.float32)

    def _hash(self, titles: tf.Tensor) -> tf.Tensor:
        return tf.strings.to_hash_bucket_fast(
            self._normalized(titles), self.buckets
        )

    def __call__(self, titles: tf.Tensor) -> tf.Tensor:
        """Looks up `log_q` of titles: float32, in the shape of `titles`."""
        return tf.gather(self.log_q, self._hash(titles))

    def attach(self, batches: tf.data.Dataset) -> tf.data.Dataset:
        """Adds `log_q`, float32 `[batch, 1 + k]`, to each batch.

        In a batch of `(query, document)`, k is 0. A batch of `(query, document,
        {"negatives": strings [batch, k], ...})` has k negatives for each click.
        """
        return with_extras(batches, lambda _, titles: {"log_q": self(titles)})


def with_extras(
    batches: tf.data.Dataset,
    compute_extras: Callable[[tf.Tensor, tf.Tensor], dict[str, tf.Tensor]],
) -> tf.data.Dataset:
    """Adds the result of `compute_extras(queries, titles)` to each batch.

    `titles`, `[batch, 1 + k]`, has the clicked title and its k negatives.
    """

    def add_extras(
        query: tf.Tensor,
        document: tf.Tensor,
        extras: dict[str, Any] | None = None,
    ) -> tuple[Any, ...]:
        extras = extras or {}
        titles = document[:, tf.newaxis]
        if "negatives" in extras:
            titles = tf.concat([titles, extras["negatives"]], axis=1)
        return query, document, {**extras, **compute_extras(query, titles)}

    return batches.map(add_extras, tf.data.AUTOTUNE)
