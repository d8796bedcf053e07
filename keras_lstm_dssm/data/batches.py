"""`tf.data` batches of (query, document) strings from click logs.

A batch can also hold negatives of its queries (judged, mined or your own, or
drawn from all titles), and the log click shares of its titles for the logQ
correction.
"""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.data.click_log import (
    ClickLog,
    Pair,
    line_field,
    weight_of,
)
from keras_lstm_dssm.errors import InputError, check_at_least
from keras_lstm_dssm.text.many_texts import NormalizedTextCache
from keras_lstm_dssm.text.word_hashing import (
    as_strings,
    normalize,
    normalize_texts,
)

SHUFFLE_BUFFER = 100_000
"""Lines of a log that are held in memory at once, to be shuffled."""

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
    """Streams a click log, shuffled anew in each epoch.

    A log of up to `shuffle_buffer` lines is shuffled as a whole. A longer one
    is read in blocks of 8 consecutive lines, drawn at random over all files:
    as many blocks as hold `shuffle_buffer` lines are read at once, and their
    lines shuffled. So each batch is drawn from across the whole log, however
    the log is sorted; only the lines of one block always share a buffer.

    The order is a function of `seed` and the epoch alone. A run that resumes
    after n training steps, with `first_step=n`, sees exactly the batches
    that an uninterrupted run sees from n on; the lines before are not read.

    Args:
        log: The click log to read.
        batch_size: Pairs in a batch. The last batch of an epoch holds what
            is left, so an epoch has ceil(log.count() / batch_size) batches.
        epochs: The number of passes over the log.
        seed: Any int; another seed gives another order.
        first_step: The number of batches to leave out at the start.
        shuffle_buffer: The number of lines held in memory to be shuffled.
            Fewer save memory; more separate neighbouring lines further.
        steps_per_epoch: The number of batches in an epoch, at most those of
            the log; each epoch leaves out other lines. Default `None`: all.

    Returns:
        A dataset of (query, document), string tensors of shape [batch], as
        the bytes of the file without surrounding white space; of a log with
        weights (`ClickLog.weighted`), of (query, document,
        {"sample_weight": float32 [batch]}). Its
        cardinality, over all epochs, is known. The bad lines that the log
        allows are left out.

    Raises:
        InputError: A file of the log is wrong (see `ClickLog`), or
            `shuffle_buffer` is less than 1.

    Example:
        >>> batches = training_batches(
        ...     log, 256, epochs=5, seed=1
        ... )  # doctest: +SKIP
        >>> model.fit(batches)  # doctest: +SKIP
    """
    check_at_least(1, shuffle_buffer=shuffle_buffer)
    blocks = log.blocks()
    per_epoch = steps_per_epoch or -(-log.count() // batch_size)
    first_epoch, skipped_batches = divmod(first_step, per_epoch)

    def shuffled(epoch: int, skipped_lines: int) -> Iterator[np.ndarray]:
        order = permutation(len(blocks), seed, epoch)
        buffers = _split(order, log.count(), shuffle_buffer)
        last_line = per_epoch * batch_size
        for number, in_buffer in enumerate(buffers, 1):
            count = int(blocks.clicks[in_buffer].sum())
            if skipped_lines < min(count, last_line):
                lines = _array(blocks.read(np.sort(in_buffer)))
                shuffle = permutation(count, seed, epoch, number)
                yield lines[shuffle[skipped_lines:last_line]]
            skipped_lines = max(0, skipped_lines - count)
            last_line -= count

    def shuffled_epochs() -> Iterator[Iterator[np.ndarray]]:
        for epoch in range(first_epoch, epochs):
            skipped = skipped_batches if epoch == first_epoch else 0
            yield shuffled(epoch, skipped * batch_size)

    left = max(0, epochs * per_epoch - first_step)
    return _pair_batches(shuffled_epochs, batch_size, left, log.weighted)


def evaluation_batches(
    pairs: Iterable[Pair] | ClickLog, batch_size: int
) -> tf.data.Dataset:
    """Batches pairs in their order; a `ClickLog` is streamed.

    Returns:
        A dataset of (query, document), string tensors of shape [batch], and
        of the weights of a log that has these, see `training_batches`.

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
            yield (_array(blocks.read(in_buffer)) for in_buffer in buffers)

        steps = -(-count // batch_size)
        return _pair_batches(in_order, batch_size, steps, pairs.weighted)
    listed = list(pairs)
    columns = tuple(
        tf.constant([pair[side] for pair in listed], tf.string)
        for side in (0, 1)
    )
    return tf.data.Dataset.from_tensor_slices(columns).batch(batch_size)


def _split(blocks: np.ndarray, lines: int, buffer: int) -> list[np.ndarray]:
    """Splits blocks into parts of equal size, of `buffer` lines at most."""
    parts = min(-(-lines // buffer), len(blocks))
    return np.array_split(blocks, parts)


def permutation(count: int, *seeds: int) -> np.ndarray:
    """Permutes 0 .. count - 1, identically in every version of NumPy."""
    return np.argsort(random_bits(count, *seeds), kind="stable")


def random_bits(count: int, *seeds: int) -> np.ndarray:
    """Draws uint64 numbers, identically in every version of NumPy."""
    # NumPy may change its distributions between versions, but not raw bits.
    return np.random.PCG64([seed % 2**64 for seed in seeds]).random_raw(count)


def cut(rows: tf.Tensor, batch_size: int) -> tf.data.Dataset:
    """Divides a tensor into batches of consecutive rows."""
    count = tf.shape(rows, tf.int64)[0]
    starts = tf.data.Dataset.range(0, count, batch_size)
    return starts.map(lambda start: rows[start : start + batch_size])


def _array(lines: list[bytes]) -> np.ndarray:
    return np.array(lines, dtype=object)


def _pair_batches(
    epochs: Callable[[], Iterator[Iterator[np.ndarray]]],
    batch_size: int,
    count: int,
    weighted: bool = False,
) -> tf.data.Dataset:
    """Divides arrays of lines into batches of (query, document).

    `epochs` yields, for each epoch, arrays of its lines; the last batch of an
    epoch may be smaller; `count` is the number of all batches. `weighted` lines
    may have a third field, and batches a third part.
    """
    columns = 3 if weighted else 2
    # Several batches at once: each call from TensorFlow to Python takes time.
    element_size = batch_size * max(1, _LINES_PER_ELEMENT // batch_size)

    def fields(lines: np.ndarray) -> np.ndarray:
        # `ClickLog.files` has checked that each line has one tab, or two.
        both = [
            line_field(field)
            for line in lines.tolist()
            for field in (*line.split(b"\t"), b"1")[:columns]
        ]
        return _array(both).reshape(-1, columns)

    def batch(rows: tf.Tensor) -> tuple[Any, ...]:
        pair = rows[:, 0], rows[:, 1]
        if not weighted:
            return pair
        return *pair, {"sample_weight": tf.strings.to_number(rows[:, 2])}

    def elements() -> Iterator[np.ndarray]:
        for epoch in epochs():
            rest = _array([])
            for lines in epoch:
                rest = np.concatenate([rest, lines])
                while len(rest) >= element_size:
                    yield fields(rest[:element_size])
                    rest = rest[element_size:]
            if len(rest):
                yield fields(rest)

    return (
        tf.data.Dataset.from_generator(
            elements,
            output_signature=tf.TensorSpec([None, columns], tf.string),
        )
        .flat_map(lambda pairs: cut(pairs, batch_size))
        .map(batch)
        .prefetch(tf.data.AUTOTUNE)
        .apply(tf.data.experimental.assert_cardinality(count))
    )


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
        """Draws the titles of a batch, strings `[batch, k]`."""

    def attach(
        self, batches: tf.data.Dataset, first_step: int | None = 0
    ) -> tf.data.Dataset:
        """Adds k drawn titles for each click to each batch of a dataset.

        The titles are `negatives`, strings `[batch, k]`.

        Args:
            batches: Dataset of `(query, document)`, strings `[batch]`, or of
                `(query, document, {"sample_weight": ...})`, perhaps with other
                negatives, which stay.
            first_step: The index of the first batch in the whole run. Default
                0. With `None`, each pass over the dataset, such as an epoch
                of `fit`, draws other negatives; the first pass draws the same
                in each process.

        Returns:
            A dataset of `(query, document, {..., "negatives": ...})`.
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
    """Makes a table from distinct texts to their rows; -1 for other texts."""
    texts = as_strings(keys)
    rows = tf.range(len(texts))
    return tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(texts, rows), -1
    )


class GivenNegatives(DrawnNegatives):
    """Adds negatives of your own for each query to batches of clicks.

    They may be judged (a person said that the title does not answer the
    query), mined (`mine_negatives`: near, but not clicked), or chosen by any
    other rule. `TwoTower` uses them in addition to the negatives that it
    takes from the batch.

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
        super().__init__(k, seed)
        by_words: dict[str, list[str]] = {}
        words_of_each = normalize(list(titles), split)
        for words, given in zip(words_of_each, titles.values(), strict=True):
            if given:
                by_words.setdefault(words, []).extend(given)
        if not by_words:
            raise InputError("no query has a negative: there is none to give")
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
        # Row 0, without titles, stands for unknown queries.
        self._counts = tf.constant([0, *counts], tf.int32)
        self._starts = tf.constant(np.cumsum([0, 0, *counts[:-1]]), tf.int32)
        self._rows = _row_table(by_words)

    def _draw(
        self, step: tf.Tensor, query: tf.Tensor, document: tf.Tensor
    ) -> tf.Tensor:
        row = self._rows.lookup(self._normalized(query)) + 1
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


class CorpusNegatives(DrawnNegatives):
    """Adds negatives that are drawn from all training titles.

    Palangi et al. 2016 draw the n = 4 negatives of a click at random from all
    documents. `TwoTower` with `negatives="corpus"` compares the clicked title
    with them; `dssm.train` attaches them, and `fit` of two lists does.

    Each click has k draws of its own, with repetition, from all titles but its
    clicked title, all equally likely. As with negatives from the batch,
    another title that was clicked for the same query can be drawn. The draw is
    a function of the seed and of the number of the batch, so that a resumed
    run draws as an uninterrupted one. A step encodes each distinct title of
    its batch once.

    Args:
        titles: The titles to draw from. Titles with the same normalised words
            are one title; memory holds each text twice.
        k: The number of negatives for each click, n in the paper. Default 4.
        seed: Any int; another seed gives another draw. Default 0.
        split: How the encoder separates words; see `normalize_texts`.

    Attributes:
        distinct: The number of titles with different words.

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
        # Any of 2^64 numbers: the remainder is as good as uniform.
        drawn = tf.cast(
            bits % tf.cast(tf.maximum(count, 1), tf.int64), tf.int32
        )
        # The rows behind the clicked title's row move up by one.
        drawn += is_known * tf.cast(drawn >= row, tf.int32)
        drawn = tf.minimum(drawn, tf.size(self._titles) - 1)
        titles = tf.gather(self._titles, drawn)
        # A single title has no negative; the loss leaves the title itself out.
        return tf.where(count > 0, titles, document[:, tf.newaxis])


def titles_of_batch(
    document: tf.Tensor, extras: Mapping[str, Any]
) -> tf.Tensor:
    """Returns the clicked title and the negatives of each row of a batch.

    They are strings `[batch, 1 + k]`, with the k negatives of
    `extras["negatives"]`; `[batch, 1]` without negatives.
    """
    titles = document[:, tf.newaxis]
    if "negatives" in extras:
        titles = tf.concat([titles, extras["negatives"]], axis=1)
    return titles


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
        weights: A weight of each click, which then counts as so many.
            Default `None`: 1 each.

    Attributes:
        counts: int64 `[buckets]`, the number of clicks in each bucket; or
            float64, the sum of their weights.

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
            of_block = list(itertools.islice(weights, len(block))) or None
            counts += np.bincount(hashed, of_block, minlength=buckets)
        self.count(counts)

    @classmethod
    def from_log(
        cls, log: ClickLog, split: str = "space"
    ) -> "ClickFrequencies":
        """Counts the clicks of a log, by their weights if it has these."""
        titles = (pair.document for pair in log)
        weights = None
        if log.weighted:
            weights = (weight_of(line) for _, line in log.lines())
        return cls(titles, split=split, weights=weights)

    def count(self, counts: np.ndarray) -> None:
        """Sets the number of clicks in each bucket.

        Args:
            counts: int or float `[buckets]`, such as the sums over several
                logs.
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
                {"negatives": strings [batch, k], ...})`, see
                `GivenNegatives`.
        """
        return with_extras(batches, lambda _, titles: {"log_q": self(titles)})


def with_extras(
    batches: tf.data.Dataset,
    extras_of: Callable[[tf.Tensor, tf.Tensor], dict[str, tf.Tensor]],
) -> tf.data.Dataset:
    """Adds tensors, computed from queries and `titles_of_batch`, to batches."""

    def with_more(
        query: tf.Tensor,
        document: tf.Tensor,
        extras: dict[str, Any] | None = None,
    ) -> tuple[Any, ...]:
        extras = extras or {}
        titles = titles_of_batch(document, extras)
        return query, document, {**extras, **extras_of(query, titles)}

    return batches.map(with_more, tf.data.AUTOTUNE)
