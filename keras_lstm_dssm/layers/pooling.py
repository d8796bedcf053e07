"""Dynamic pooling, and two kinds of k-max pooling."""

import itertools
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.errors import check_at_least, check_choice
from keras_lstm_dssm.private_api import accept_any_arguments
from keras_lstm_dssm.registration import Configured, register

MODES = ("max", "min")
REPEATS = ("modulo", "double")


def regions(
    lengths: tf.Tensor, count: int, repeat: str = "modulo"
) -> tuple[tf.Tensor, tf.Tensor]:
    """Divides positions 0 to length - 1 into `count` regions, for each length.

    Returns the first position and the number of positions of each region, both
    `[len(lengths), count]`. `DynamicPooling` describes the rules. Lengths must
    be at least 1.
    """
    if repeat == "double":
        times = tf.ones_like(lengths)
        for _ in range((count - 1).bit_length()):
            times = tf.where(lengths * times < count, 2 * times, times)
        starts, sizes = regions(lengths * times, count)
        times = times[:, tf.newaxis]
        first, last = starts // times, (starts + sizes - 1) // times
        return first, last - first + 1
    lengths = lengths[:, tf.newaxis]
    number = tf.range(count)[tf.newaxis]
    floor, remainder = lengths // count, lengths % count
    larger = tf.maximum(number - (count - remainder), 0)
    sizes = floor + tf.cast(number >= count - remainder, tf.int32)
    return (
        tf.where(floor > 0, number * floor + larger, number % lengths),
        tf.maximum(sizes, 1),
    )


@register
class DynamicPooling(Configured, keras.layers.Layer):
    """Reduces matrices of different sizes to matrices of one size.

    Dynamic pooling of Socher et al. 2011. The L rows without padding are
    divided into `rows` regions of floor(L / rows) rows. The last (L % rows)
    regions have one more row. The columns are divided in the same way. Each
    output cell is the maximum (or minimum) of the cells in a region of rows and
    a region of columns, for each channel.

    Args:
        rows: Number of rows of the output.
        columns: Number of columns of the output. Default `None`: `rows`.
        mode: `"max"` (default) or `"min"`.
        repeat: Rule for matrices that are smaller than the output. With
            `"modulo"` (default), each region has one position, and the first
            position follows the last, `0 1 2 0 1 ..`, as in the programs of Wan
            et al. 2016. With `"double"`, each position occurs twice, so that
            `0 1 2` becomes `0 0 1 1 2 2`. The doubling is repeated until there
            are enough positions for all regions, as in the programs of Socher
            et al. 2011.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        cells: Float `(pairs, m, n, channels)`.
        query_lengths: int32 `(pairs,)`, number of rows without padding, 0 to m.
        document_lengths: int32 `(pairs,)`, number of columns without padding,
            0 to n.

    Returns:
        Float `(pairs, rows, columns, channels)`; zero for a pair with a text
        of length 0.

    Raises:
        InputError: An argument is not supported.

    Example:
    >>> cells = tf.reshape(tf.range(12.0), [1, 3, 4, 1])
    >>> DynamicPooling(2)(cells, [3], [4])[0, :, :, 0].numpy()
    array([[ 1.,  3.],
           [ 9., 11.]], dtype=float32)
    """

    def __init__(
        self,
        rows: int,
        columns: int | None = None,
        mode: str = "max",
        repeat: str = "modulo",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.rows = rows
        self.columns = rows if columns is None else columns
        self.mode = mode
        self.repeat = repeat
        check_at_least(1, rows=self.rows, columns=self.columns)
        check_choice(MODES, mode=mode)
        check_choice(REPEATS, repeat=repeat)
        accept_any_arguments(self)  # lengths may be lists

    def call(
        self,
        cells: tf.Tensor,
        query_lengths: tf.Tensor,
        document_lengths: tf.Tensor,
    ) -> tf.Tensor:
        """Pools regions of rows, then regions of columns."""
        pooled = self._rows(cells, query_lengths, self.rows)
        pooled = tf.transpose(pooled, [0, 2, 1, 3])
        pooled = self._rows(pooled, document_lengths, self.columns)
        return tf.transpose(pooled, [0, 2, 1, 3])

    def _rows(self, cells: tf.Tensor, lengths: Any, count: int) -> tf.Tensor:
        lengths = tf.convert_to_tensor(lengths, tf.int32)
        starts, sizes = regions(tf.maximum(lengths, 1), count, self.repeat)
        # Smaller regions repeat their last row: the extremes stay the same.
        offsets = tf.minimum(
            tf.range(tf.reduce_max(sizes)), sizes[:, :, tf.newaxis] - 1
        )
        index = starts[:, :, tf.newaxis] + offsets  # [pairs, count, largest]
        pairs, width = tf.shape(cells)[0], tf.shape(cells)[2]
        channels = cells.shape[3]
        chosen = tf.gather(cells, tf.reshape(index, [pairs, -1]), batch_dims=1)
        chosen = tf.reshape(
            chosen, [pairs * count, tf.shape(index)[2], width * channels]
        )
        reduce = tf.reduce_max if self.mode == "max" else tf.reduce_min
        pooled = tf.reshape(
            reduce(chosen, axis=1), [-1, count, width, channels]
        )
        return tf.where(lengths[:, None, None, None] > 0, pooled, 0)


class StrongestCells(NamedTuple):
    """Holds the k largest cells of each slice, in descending order.

    Each field is `(pairs, slices, k)`. If a pair has fewer than k cells, the
    remaining values are 0, and the remaining positions are -1.
    """

    values: tf.Tensor
    query_positions: tf.Tensor
    document_positions: tf.Tensor


@register
class KMaxPooling(Configured, keras.layers.Layer):
    """Takes the k largest cells of each slice of each matrix.

    "k-Max Pooling" of Wan et al. 2016. Takes cells `(pairs, m, n, slices)`,
    `query_lengths` (1 to m) and `document_lengths` (1 to n), int32 `(pairs,)`.
    Returns the values in descending order, `(pairs, slices, k)`. If a pair has
    fewer than k cells without padding, the remaining values are 0.

    Args:
        k: Number of cells. Default 5.
        **kwargs: Arguments of `keras.layers.Layer`.

    Raises:
        InputError: `k` is less than 1.

    Example:
    >>> cells = tf.reshape(tf.range(12.0), [1, 3, 4, 1])
    >>> KMaxPooling(2)(cells, [3], [3]).numpy()
    array([[[10.,  9.]]], dtype=float32)
    """

    def __init__(self, k: int = 5, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        check_at_least(1, k=k)
        self.k = k
        accept_any_arguments(self)  # lengths may be lists

    def call(
        self,
        cells: tf.Tensor,
        query_lengths: tf.Tensor,
        document_lengths: tf.Tensor,
    ) -> tf.Tensor:
        """Takes the k largest values."""
        return self.strongest(cells, query_lengths, document_lengths).values

    def strongest(
        self, cells: tf.Tensor, query_lengths: Any, document_lengths: Any
    ) -> StrongestCells:
        """Takes the k largest values and their positions."""
        return self.strongest_of_rows(
            tf.transpose(cells, [0, 1, 3, 2]), query_lengths, document_lengths
        )

    def strongest_of_rows(
        self, cells: tf.Tensor, query_lengths: Any, document_lengths: Any
    ) -> StrongestCells:
        """Takes the k largest values of cells `(pairs, m, slices, n)`."""
        query_lengths = tf.convert_to_tensor(query_lengths, tf.int32)
        document_lengths = tf.convert_to_tensor(document_lengths, tf.int32)
        pairs, m, _, n = tf.unstack(tf.shape(cells))
        slices = cells.shape[2]
        lowest = tf.constant(float("-inf"), cells.dtype)
        columns = tf.sequence_mask(document_lengths, n)
        cells = tf.where(columns[:, tf.newaxis, tf.newaxis], cells, lowest)
        # The k largest cells are in the k rows with the largest maxima. `rows`
        # is sorted, so the second `top_k` lists equal cells in order of rows.
        row_count = tf.minimum(self.k, m)
        real = tf.sequence_mask(query_lengths, m)[:, :, tf.newaxis]
        maxima = tf.where(real, tf.reduce_max(cells, axis=3), lowest)
        maxima = tf.transpose(maxima, [0, 2, 1])
        rows = tf.sort(tf.math.top_k(maxima, row_count).indices, axis=2)
        index = rows * slices + tf.range(slices)[:, tf.newaxis]
        chosen = tf.gather(
            tf.reshape(cells, [pairs, m * slices, n]), index, batch_dims=1
        )
        # If a query has fewer than k words, `rows` may have rows of padding.
        exists = rows < query_lengths[:, tf.newaxis, tf.newaxis]
        chosen = tf.where(exists[..., tf.newaxis], chosen, lowest)
        flat = tf.reshape(chosen, [pairs, slices, row_count * n])
        missing = tf.maximum(self.k - row_count * n, 0)
        flat = tf.pad(
            flat, [[0, 0], [0, 0], [0, missing]], constant_values=lowest
        )
        values, index = tf.math.top_k(flat, self.k)
        # The test `values > lowest` is not used, because 0 would replace a NaN:
        # the test is false for a NaN. But a NaN must stop the training.
        cell_counts = query_lengths * document_lengths
        exists = tf.range(self.k) < cell_counts[:, tf.newaxis, tf.newaxis]
        row_index = tf.minimum(index // n, row_count - 1)
        return StrongestCells(
            tf.where(exists, values, tf.zeros([], values.dtype)),
            tf.where(exists, tf.gather(rows, row_index, batch_dims=2), -1),
            tf.where(exists, index % n, -1),
        )


def strongest_of_columns(
    cells: np.ndarray, lengths: np.ndarray, k: int
) -> np.ndarray:
    """Computes `KMaxPooling` by NumPy, for one query and many documents."""
    # `cells` is `[m, slices, words]`, with the words of all documents in order.
    # Neighbouring documents of equal length are pooled in one step.
    m, slices, _ = cells.shape
    result = np.zeros((len(lengths), slices, k), cells.dtype)
    column = row = 0
    for length, documents in itertools.groupby(lengths.tolist()):
        count = len(list(documents))
        block = cells[:, :, column : column + count * length]
        block = block.reshape(m, slices, count, length).transpose(2, 1, 0, 3)
        block = block.reshape(count, slices, m * length)
        if m * length > k:
            block = np.partition(block, m * length - k)[..., -k:]
        block = np.sort(block)[..., ::-1]
        result[row : row + count, :, : block.shape[2]] = block
        column, row = column + count * length, row + count
    return result


def dynamic_k(
    lengths: tf.Tensor,
    layer: int,
    layers: int,
    k_top: int,
    k_min: int | None = None,
) -> tf.Tensor:
    """Computes k of dynamic k-max pooling in layer l = 1 .. L, for n words.

    k_l = max(k_min, ceil((L - l) / L * n)) for l < L;  k_L = k_top.
    If `k_min` is `None`, k_min = k_top.
    """
    if layer == layers:
        return tf.fill(tf.shape(lengths), k_top)
    share = ((layers - layer) * lengths + layers - 1) // layers
    return tf.maximum(share, k_top if k_min is None else k_min)


@register
class OrderedKMax(keras.layers.Layer):
    """Pools each feature of a text to its k largest values, in text order."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        accept_any_arguments(self)  # lengths may be lists

    def call(
        self, values: tf.Tensor, lengths: tf.Tensor, k: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns values `(texts, max(k), features)` and the new lengths."""
        lengths = tf.convert_to_tensor(lengths, tf.int32)
        k = tf.convert_to_tensor(k, tf.int32)
        counts = tf.minimum(k, lengths)
        features, time = values.shape[2], tf.shape(values)[1]
        values = tf.transpose(values, [0, 2, 1])  # [texts, features, time]
        real = tf.sequence_mask(lengths, time)[:, tf.newaxis]
        lowest = tf.constant(values.dtype.min, values.dtype)
        largest = tf.reduce_max(counts)
        index = tf.math.top_k(
            tf.where(real, values, lowest), largest, sorted=True
        ).indices
        is_value = tf.sequence_mask(counts, largest)[:, tf.newaxis]
        # Sorts by position in the text; entries beyond `counts` come last.
        index = tf.sort(tf.where(is_value, index, time))
        chosen = tf.gather(values, tf.minimum(index, time - 1), batch_dims=2)
        chosen = tf.where(is_value, chosen, tf.zeros([], values.dtype))
        missing = tf.reduce_max(k) - largest
        chosen = tf.pad(chosen, [[0, 0], [0, 0], [0, missing]])
        chosen = tf.transpose(chosen, [0, 2, 1])
        return tf.ensure_shape(chosen, [None, None, features]), counts
