"""PairedTexts: the texts of a batch of pairs, with little padding."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import tensorflow as tf

_DOCUMENT_PARTS = 4
_QUERY_PARTS = 2


class PairedTexts(NamedTuple):
    """Holds one side of a batch of pairs: texts, and the text of each pair.

    All pairs padded to the longest query and the longest document have
    several times as many cells as there are pairs of words. In groups of
    similar length there are far fewer.

    Attributes:
        vectors: Float `(positions, d)`, of all words of the texts.
        starts: int32 `(texts,)`, the first position of each text.
        lengths: int32 `(texts,)`.
        rows: int32 `(pairs,)`, the text of each pair.
    """

    vectors: tf.Tensor
    starts: tf.Tensor
    lengths: tf.Tensor
    rows: tf.Tensor

    @property
    def pair_lengths(self) -> tf.Tensor:
        """The length of the text of each pair, int32 `(pairs,)`."""
        return tf.gather(self.lengths, self.rows)

    def take(self, order: tf.Tensor) -> "PairedTexts":
        """Take some pairs, int32 `(pairs,)`, in this order."""
        return self._replace(rows=tf.gather(self.rows, order))

    def groups(self) -> Iterator["PairedTexts"]:
        """Divide the pairs, one after the other, into a few groups."""
        pairs, count = tf.size(self.rows), _DOCUMENT_PARTS * _QUERY_PARTS
        for number in range(count):
            start, end = number * pairs // count, (number + 1) * pairs // count
            yield self._replace(rows=self.rows[start:end])

    def vector_rows(self, positions: tf.Tensor) -> tf.Tensor:
        """Compute which rows of `vectors` belong to chosen positions.

        Args:
            positions: int32 `(pairs, slices, k)`; a negative one counts as 0.
        """
        first = tf.gather(self.starts, self.rows)
        return first[:, tf.newaxis, tf.newaxis] + tf.maximum(positions, 0)

    def padded(self, parts: Sequence[tf.Tensor]) -> tuple[tf.Tensor, ...]:
        """Take the rows of the pairs, padded to the longest of these.

        Args:
            parts: What was computed of `vectors`, each `(positions, ...)`.

        Returns:
            Each `(pairs, longest, ...)`, with any values past the end of a
            text.
        """
        # At least 1: a group is empty if there are few pairs.
        longest = tf.reduce_max(
            tf.pad(self.pair_lengths, [[1, 0]], constant_values=1)
        )
        starts = tf.gather(self.starts, self.rows)[:, tf.newaxis]
        last = self.pair_lengths[:, tf.newaxis] - 1
        index = starts + tf.minimum(tf.range(longest), last)
        return tuple(tf.gather(part, index) for part in parts)


def order_by_length(
    query_lengths: tf.Tensor, document_lengths: tf.Tensor
) -> tf.Tensor:
    """Order pairs so that each of `PairedTexts.groups` has similar lengths.

    Args:
        query_lengths: int32 `(pairs,)`.
        document_lengths: int32 `(pairs,)`.

    Returns:
        int32 `(pairs,)`: a quarter of the pairs with the shortest documents
        first, and so on; within each, the shortest queries first.
    """
    by_document = tf.argsort(document_lengths, stable=True)
    rank = tf.math.invert_permutation(by_document)
    part = rank * _DOCUMENT_PARTS // tf.maximum(tf.size(rank), 1)
    longest = tf.reduce_max(tf.pad(query_lengths, [[1, 0]]))
    return tf.argsort(part * (longest + 1) + query_lengths, stable=True)
