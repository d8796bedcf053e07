"""DynamicPooling: matrices of different sizes -> matrices of one size."""

from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.private_api import accept_any_arguments
from keras_lstm_dssm.registration import register

MODES = ("max", "min")
REPEATS = ("modulo", "double")


def regions(
    lengths: tf.Tensor, count: int, repeat: str = "modulo"
) -> tuple[tf.Tensor, tf.Tensor]:
    """Divide each length into `count` regions.

    A region has floor(length / count) positions; the remainder makes the last
    regions one larger. A length below `count` gives regions of one position,
    which repeat from the first when they are used up; or its positions are
    doubled, `0 0 1 1 ..`, until there are at least `count` to be divided.

    Args:
        lengths: int32 `[rows]`, at least 1.
        count: Number of regions.
        repeat: `"modulo"` (default) or `"double"`.

    Returns:
        The first position and the number of positions of each region, both
        int32 `[rows, count]`.

    Example:
    >>> regions(tf.constant([8, 2]), 3)[0].numpy()
    array([[0, 2, 5],
           [0, 1, 0]], dtype=int32)
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
class DynamicPooling(keras.layers.Layer):
    """Reduces matrices of different sizes to matrices of one size.

    The real rows and the real columns of each matrix are divided into regions
    as equal as possible, see `regions`, and each output cell is the maximum
    (or minimum) of its rectangle, for each channel alone. Padding takes no
    part. Socher et al. 2011 call this dynamic pooling.

    Where several cells of a rectangle are equal, they share the gradient.

    Args:
        rows: Number of rows of the output.
        columns: Number of columns of the output. Default `None`, as `rows`.
        mode: `"max"` (default) or `"min"`.
        repeat: What happens to rows or columns that are too few: `"modulo"`
            (default), as in the programs of Wan et al. 2016, or `"double"`,
            as in those of Socher et al. 2011; see `regions`.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        cells: Float `(pairs, m, n, channels)`.
        query_lengths: int32 `(pairs,)`, the real rows, 0 to m.
        document_lengths: int32 `(pairs,)`, the real columns, 0 to n.

    Returns:
        Float `(pairs, rows, columns, channels)`, zero for a pair of which a
        length is 0.

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
        if self.rows < 1 or self.columns < 1:
            raise InputError(
                f"rows and columns must be at least 1, not {rows} and {columns}"
            )
        if mode not in MODES:
            raise InputError(f"mode must be one of {MODES}, not {mode!r}")
        if repeat not in REPEATS:
            raise InputError(f"repeat must be one of {REPEATS}, not {repeat!r}")
        accept_any_arguments(self)  # such as a list of lengths

    def call(
        self,
        cells: tf.Tensor,
        query_lengths: tf.Tensor,
        document_lengths: tf.Tensor,
    ) -> tf.Tensor:
        """Reduce the rows, then the columns."""
        # The maximum of a rectangle is the maximum of its rows' maxima, so
        # each axis costs one gather of about as many cells as there are.
        pooled = self._rows(cells, query_lengths, self.rows)
        pooled = tf.transpose(pooled, [0, 2, 1, 3])
        pooled = self._rows(pooled, document_lengths, self.columns)
        return tf.transpose(pooled, [0, 2, 1, 3])

    def _rows(self, cells: tf.Tensor, lengths: Any, count: int) -> tf.Tensor:
        lengths = tf.convert_to_tensor(lengths, tf.int32)
        starts, sizes = regions(tf.maximum(lengths, 1), count, self.repeat)
        # Smaller regions repeat their last row, which changes no maximum.
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

    def get_config(self) -> dict[str, Any]:
        """Return the constructor arguments as a dict, for `from_config`."""
        return {
            **super().get_config(),
            "rows": self.rows,
            "columns": self.columns,
            "mode": self.mode,
            "repeat": self.repeat,
        }
