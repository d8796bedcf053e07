"""Click logs and pairs as `tf.data` batches of (query, document) strings."""

from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from keras_lstm_dssm.data.click_log import ClickLog, Pair

_FILES_AT_ONCE = 16
_LINES_PER_TURN = 16


def training_batches(
    log: ClickLog,
    batch_size: int,
    *,
    epochs: int,
    seed: int,
    first_update: int = 0,
    shuffle_buffer: int = 100_000,
) -> tf.data.Dataset:
    """Streams a click log, shuffled anew in each epoch.

    The order is a function of `seed` and the epoch alone. So a run that was
    resumed after n updates, with `first_update=n`, sees exactly the batches
    that the whole run sees from n on. The log is never held in memory.

    Args:
        log: The clicks.
        batch_size: Pairs a batch. The last batch of an epoch holds what is
            left, so an epoch has ceil(log.count() / batch_size) batches.
        epochs: How often the log is read.
        seed: Any int.
        first_update: The number of batches to leave out at the start.
        shuffle_buffer: Lines held in memory to draw from.

    Returns:
        A dataset of (query, document), string tensors of shape [batch], as
        the bytes of the file without surrounding white space. Its
        cardinality, over all epochs, is known. The bad lines that the log
        allows are left out.

    Raises:
        InputError: a file of the log is wrong (see `ClickLog`).

    Example:
        >>> batches = training_batches(
        ...     log, 256, epochs=5, seed=1
        ... )  # doctest: +SKIP
        >>> model.fit(batches)  # doctest: +SKIP
    """
    per_epoch = -(-log.count() // batch_size)
    first_epoch, skipped = divmod(first_update, per_epoch)

    def epoch_batches(epoch: tf.Tensor) -> tf.data.Dataset:
        # Shuffling also looks at the seed of the graph, which is the global
        # one unless it is set: here, of this function's graph only.
        tf.random.set_seed(1)
        seeds = tf.random.stateless_uniform(
            [2], [seed, epoch], minval=None, maxval=None, dtype=tf.int64
        )
        return (
            _files(log)
            .shuffle(len(log.paths), seeds[0])
            .interleave(
                _lines,
                cycle_length=_FILES_AT_ONCE,
                block_length=_LINES_PER_TURN,
            )
            .shuffle(shuffle_buffer, seeds[1])
            .batch(batch_size)
        )

    batches = (
        tf.data.Dataset.range(first_epoch, epochs)
        .flat_map(epoch_batches)
        .skip(skipped)
    )
    left = max(0, epochs * per_epoch - first_update)
    return _pairs(batches).apply(tf.data.experimental.assert_cardinality(left))


def evaluation_batches(
    pairs: Iterable[Pair] | ClickLog, batch_size: int
) -> tf.data.Dataset:
    """Batches pairs in their order; a `ClickLog` is streamed.

    Returns:
        A dataset of (query, document), string tensors of shape [batch].

    Raises:
        InputError: a file of the log is wrong (see `ClickLog`).
    """
    if isinstance(pairs, ClickLog):
        count = pairs.count()
        batches = _pairs(_files(pairs).flat_map(_lines).batch(batch_size))
        return batches.apply(
            tf.data.experimental.assert_cardinality(-(-count // batch_size))
        )
    listed = list(pairs)
    columns = tuple(
        tf.constant([pair[side] for pair in listed], tf.string)
        for side in (0, 1)
    )
    return tf.data.Dataset.from_tensor_slices(columns).batch(batch_size)


def _files(log: ClickLog) -> tf.data.Dataset:
    """Yields (path, lines, skipped lines) for each file; see `LogFile`."""
    paths, lines, skipped = zip(*log.files(), strict=True)
    columns: tuple[Any, ...] = list(paths), tf.constant(lines, tf.int64)
    if any(skipped):
        columns += (tf.ragged.constant(skipped, tf.int64),)
    return tf.data.Dataset.from_tensor_slices(columns)


def _lines(
    path: tf.Tensor, count: tf.Tensor, skipped: tf.Tensor | None = None
) -> tf.data.Dataset:
    compressed = tf.strings.substr(path, -3, 3) == ".gz"
    lines = tf.data.TextLineDataset(path, tf.where(compressed, "GZIP", ""))
    # What follows the last line counted can only be blank lines; with fewer,
    # the file is not the one that was counted.
    lines = lines.take(count).apply(
        tf.data.experimental.assert_cardinality(count)
    )
    if skipped is None:
        return lines

    def kept(number: tf.Tensor, _: tf.Tensor) -> tf.Tensor:
        before, after = (
            tf.searchsorted(skipped, [number], side)
            for side in ("left", "right")
        )
        return before[0] == after[0]

    # By number: what is bad is decided in one place, when lines are counted.
    return lines.enumerate(1).filter(kept).map(lambda _, line: line)


def _pairs(batches: tf.data.Dataset) -> tf.data.Dataset:
    """Splits batches of lines into (query, document)."""

    def split(lines: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        # `ClickLog.files` has seen that each line has exactly one tab.
        fields = tf.strings.split(lines, "\t").values
        fields = tf.strings.regex_replace(fields, r"^[\s\v]*\x{feff}", "")
        fields = tf.reshape(tf.strings.strip(fields), [-1, 2])
        return fields[:, 0], fields[:, 1]

    return batches.map(split, tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
