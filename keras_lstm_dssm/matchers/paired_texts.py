"""PairedTexts: the texts of a batch of pairs, with little padding."""

from collections.abc import Iterator
from typing import NamedTuple

import tensorflow as tf

from keras_lstm_dssm.layers import WordSequences

_DOCUMENT_PARTS = 4
_QUERY_PARTS = 2


class PairedTexts(NamedTuple):
    """Holds one side of a batch of pairs: texts, and the text of each pair.

    All pairs padded to the longest query and the longest document have
    several times as many cells as there are pairs of words. In groups of
    similar length there are far fewer.

    Attributes:
        vectors: Float `(texts, time, d)`, of the distinct texts.
        lengths: int32 `(texts,)`.
        rows: int32 `(pairs,)`, the text of each pair.
    """

    vectors: tf.Tensor
    lengths: tf.Tensor
    rows: tf.Tensor

    @property
    def pair_lengths(self) -> tf.Tensor:
        """The length of the text of each pair, int32 `(pairs,)`."""
        return tf.gather(self.lengths, self.rows)

    @property
    def flat(self) -> tf.Tensor:
        """The vectors of all texts, `(texts * time, d)`."""
        return tf.reshape(self.vectors, [-1, self.vectors.shape[-1]])

    def take(self, order: tf.Tensor) -> "PairedTexts":
        """Take some pairs, int32 `(pairs,)`, in this order."""
        return self._replace(rows=tf.gather(self.rows, order))

    def groups(self) -> Iterator["PairedTexts"]:
        """Divide the pairs, one after the other, into a few groups."""
        pairs, count = tf.size(self.rows), _DOCUMENT_PARTS * _QUERY_PARTS
        for number in range(count):
            start, end = number * pairs // count, (number + 1) * pairs // count
            yield self._replace(rows=self.rows[start:end])

    def flat_rows(self, positions: tf.Tensor) -> tf.Tensor:
        """Compute the rows of `flat` of chosen words.

        Args:
            positions: int32 `(pairs, slices, k)`; a negative one counts as 0.
        """
        first = self.rows * tf.shape(self.vectors)[1]
        return first[:, tf.newaxis, tf.newaxis] + tf.maximum(positions, 0)

    def padded(self, parts: tuple[tf.Tensor, ...]) -> tuple[tf.Tensor, ...]:
        """Take the rows of the pairs, padded to the longest of these.

        Args:
            parts: What was computed of the vectors of these texts, each
                `(texts, time, ...)`, of any number of time steps.

        Returns:
            Each `(pairs, longest, ...)`.
        """
        # At least 1: a group is empty if there are few pairs.
        longest = tf.reduce_max(
            tf.pad(self.pair_lengths, [[1, 0]], constant_values=1)
        )
        first = self.rows[:, tf.newaxis]
        return tuple(
            tf.gather(
                tf.reshape(part, [-1, *part.shape[2:]]),
                first * tf.shape(part)[1] + tf.range(longest),
            )
            for part in parts
        )


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


def joined(first: WordSequences, second: WordSequences) -> WordSequences:
    """Join two batches of texts; their lengths are not in order any more.

    Args:
        first: Texts.
        second: More texts, which come after them.
    """
    parts = first, second
    times = [tf.shape(texts.words)[1] for texts in parts]
    pads = [[[0, 0], [0, tf.maximum(*times) - time]] for time in times]
    vectors = [
        tf.pad(texts.vectors, [*pad, [0, 0]])
        for texts, pad in zip(parts, pads, strict=True)
    ]
    words = [
        tf.pad(texts.words, pad) for texts, pad in zip(parts, pads, strict=True)
    ]
    return WordSequences(
        tf.concat(vectors, axis=0),
        tf.concat([first.lengths, second.lengths], axis=0),
        tf.concat(words, axis=0),
    )
