"""KMaxPooling: the k largest cells of each matrix."""

from typing import Any, NamedTuple

import keras
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.private_api import accept_any_arguments
from keras_lstm_dssm.registration import register


class StrongestCells(NamedTuple):
    """Holds the largest cells of each pair of texts, largest first.

    All fields are `(pairs, slices, k)`. A pair with fewer than k real cells
    has the value 0 and the positions -1 in the places that remain.

    Attributes:
        values: Float.
        query_positions: int32, the position i of the word in the query.
        document_positions: int32, the position j of the word in the document.

    Example:
    >>> cells = tf.reshape(tf.range(12.0), [1, 3, 4, 1])
    >>> found = KMaxPooling(2).strongest(cells, [3], [4])
    >>> found.values.numpy().tolist(), found.document_positions.numpy().tolist()
    ([[[11.0, 10.0]]], [[[3, 2]]])
    """

    values: tf.Tensor
    query_positions: tf.Tensor
    document_positions: tf.Tensor


@register
class KMaxPooling(keras.layers.Layer):
    """Takes the k largest cells of each matrix, for each slice alone.

    The values are in descending order, zeros where a pair has fewer than k
    real cells. Padding is never among them. Of equal cells the first one
    comes first and gets the gradient. Wan et al. 2016, "k-Max Pooling".

    Args:
        k: Number of cells. Default 5.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        cells: Float `(pairs, m, n, slices)`.
        query_lengths: int32 `(pairs,)`, the real rows, 1 to m.
        document_lengths: int32 `(pairs,)`, the real columns, 1 to n.

    Returns:
        Float `(pairs, slices, k)`.

    Raises:
        InputError: `k` is less than 1.

    Example:
    >>> cells = tf.reshape(tf.range(12.0), [1, 3, 4, 1])
    >>> KMaxPooling(2)(cells, [3], [3]).numpy()
    array([[[10.,  9.]]], dtype=float32)
    """

    def __init__(self, k: int = 5, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if k < 1:
            raise InputError(f"k must be at least 1, not {k}")
        self.k = k
        accept_any_arguments(self)  # such as a list of lengths

    def call(
        self,
        cells: tf.Tensor,
        query_lengths: tf.Tensor,
        document_lengths: tf.Tensor,
    ) -> tf.Tensor:
        """Take the k largest values."""
        return self.strongest(cells, query_lengths, document_lengths).values

    def strongest(
        self, cells: tf.Tensor, query_lengths: Any, document_lengths: Any
    ) -> StrongestCells:
        """Take the k largest values, and where they are.

        Args:
            cells: As for a call.
            query_lengths: As for a call.
            document_lengths: As for a call.
        """
        return self.strongest_of_rows(
            tf.transpose(cells, [0, 1, 3, 2]), query_lengths, document_lengths
        )

    def strongest_of_rows(
        self, cells: tf.Tensor, query_lengths: Any, document_lengths: Any
    ) -> StrongestCells:
        """Take the k largest values of cells in another order of axes.

        Args:
            cells: `(pairs, m, slices, n)`, see `Interaction.compare_rows`.
            query_lengths: As for a call.
            document_lengths: As for a call.
        """
        query_lengths = tf.convert_to_tensor(query_lengths, tf.int32)
        document_lengths = tf.convert_to_tensor(document_lengths, tf.int32)
        pairs, m, _, n = tf.unstack(tf.shape(cells))
        slices = cells.shape[2]
        lowest = tf.constant(float("-inf"), cells.dtype)
        columns = tf.sequence_mask(document_lengths, n)
        cells = tf.where(columns[:, tf.newaxis, tf.newaxis], cells, lowest)
        # The k largest cells lie in the k rows with the largest maxima. Row
        # maxima take a third of the time of a top-k over all cells. In
        # ascending order of rows, the first of equal cells comes first.
        row_count = tf.minimum(self.k, m)
        real = tf.sequence_mask(query_lengths, m)[:, :, tf.newaxis]
        maxima = tf.where(real, tf.reduce_max(cells, axis=3), lowest)
        maxima = tf.transpose(maxima, [0, 2, 1])
        rows = tf.sort(tf.math.top_k(maxima, row_count).indices, axis=2)
        index = rows * slices + tf.range(slices)[:, tf.newaxis]
        chosen = tf.gather(
            tf.reshape(cells, [pairs, m * slices, n]), index, batch_dims=1
        )
        # Rows of padding are chosen where a query has fewer than k words.
        exists = rows < query_lengths[:, tf.newaxis, tf.newaxis]
        chosen = tf.where(exists[..., tf.newaxis], chosen, lowest)
        flat = tf.reshape(chosen, [pairs, slices, row_count * n])
        missing = tf.maximum(self.k - row_count * n, 0)
        flat = tf.pad(
            flat, [[0, 0], [0, 0], [0, missing]], constant_values=lowest
        )
        values, index = tf.math.top_k(flat, self.k)
        # By count, not by value: a NaN must stay, so that training stops.
        cell_counts = query_lengths * document_lengths
        exists = tf.range(self.k) < cell_counts[:, tf.newaxis, tf.newaxis]
        row_index = tf.minimum(index // n, row_count - 1)
        return StrongestCells(
            tf.where(exists, values, tf.zeros([], values.dtype)),
            tf.where(exists, tf.gather(rows, row_index, batch_dims=2), -1),
            tf.where(exists, index % n, -1),
        )

    def get_config(self) -> dict[str, Any]:
        """Return the constructor arguments as a dict, for `from_config`."""
        return {**super().get_config(), "k": self.k}
