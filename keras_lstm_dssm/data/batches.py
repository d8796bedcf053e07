"""Makes `tf.data` batches of (query, document) strings from click logs."""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.data.click_lines import Pair, line_field
from keras_lstm_dssm.data.click_log import ClickLog
from keras_lstm_dssm.errors import InputError

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
        the bytes of the file without surrounding white space. Its
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
    if shuffle_buffer < 1:
        raise InputError(
            f"shuffle_buffer must be 1 or more, not {shuffle_buffer}"
        )
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
    return _pair_batches(shuffled_epochs, batch_size, left)


def evaluation_batches(
    pairs: Iterable[Pair] | ClickLog, batch_size: int
) -> tf.data.Dataset:
    """Batches pairs in their order; a `ClickLog` is streamed.

    Returns:
        A dataset of (query, document), string tensors of shape [batch].

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

        return _pair_batches(in_order, batch_size, -(-count // batch_size))
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
    # NumPy may change its distributions between versions, but not raw bits.
    bits = np.random.PCG64([seed % 2**64 for seed in seeds]).random_raw(count)
    return np.argsort(bits, kind="stable")


def cut(rows: tf.Tensor, batch_size: int) -> tf.data.Dataset:
    """Cuts a tensor into batches of consecutive rows."""
    count = tf.shape(rows, tf.int64)[0]
    starts = tf.data.Dataset.range(0, count, batch_size)
    return starts.map(lambda start: rows[start : start + batch_size])


def _array(lines: list[bytes]) -> np.ndarray:
    return np.array(lines, dtype=object)


def _pair_batches(
    epochs: Callable[[], Iterator[Iterator[np.ndarray]]],
    batch_size: int,
    count: int,
) -> tf.data.Dataset:
    """Cuts arrays of lines into batches of (query, document).

    Args:
        epochs: Function that yields, for each epoch, arrays of its lines.
        batch_size: Pairs in a batch; fewer in the last one of an epoch.
        count: The number of batches in all epochs.
    """
    # Several batches at once: each call from TensorFlow to Python takes time.
    element_size = batch_size * max(1, _LINES_PER_ELEMENT // batch_size)

    def fields(lines: np.ndarray) -> np.ndarray:
        # `ClickLog.files` has checked that each line has exactly one tab.
        both = [
            line_field(field)
            for line in lines.tolist()
            for field in line.split(b"\t")
        ]
        return _array(both).reshape(-1, 2)

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
            elements, output_signature=tf.TensorSpec([None, 2], tf.string)
        )
        .flat_map(lambda pairs: cut(pairs, batch_size))
        .map(lambda pairs: (pairs[:, 0], pairs[:, 1]))
        .prefetch(tf.data.AUTOTUNE)
        .apply(tf.data.experimental.assert_cardinality(count))
    )
