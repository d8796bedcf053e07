"""Trees: a binary tree over the words of each text of a batch."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf


class Trees(NamedTuple):
    """Holds a binary tree over the words of each text.

    In a batch padded to `time` words, node i < time of a text is its i-th
    word, and node time + k is the parent made by its k-th merge. A text of n
    words has n - 1 merges, and the last one makes the root.

    Attributes:
        children: int32 `[texts, time - 1, 2]`, the left and the right node of
            each merge; 0 past the merges of a text.
        slots: int32 `[texts, 2 * time - 1]`, where a node occurs in
            `children`: 2 k if it is the left child of merge k, 2 k + 1 if it
            is the right one; -1 for the root and where there is no node.
        depths: int32 `[texts, 2 * time - 1]`, number of merges above a node.
    """

    children: tf.Tensor
    slots: tf.Tensor
    depths: tf.Tensor

    @classmethod
    def from_children(cls, children: tf.Tensor, lengths: tf.Tensor) -> "Trees":
        """Find the parent and the depth of each node.

        Args:
            children: As in `Trees`.
            lengths: int32 `[texts]`, number of words of each text.
        """
        texts, merges = tf.shape(children)[0], tf.shape(children)[1]
        time = merges + 1
        real = tf.sequence_mask(2 * (lengths - 1), 2 * merges)
        place = tf.cast(tf.where(real), tf.int32)
        child = tf.boolean_mask(tf.reshape(children, [texts, -1]), real)
        slots = tf.tensor_scatter_nd_update(
            tf.fill([texts, 2 * time - 1], -1),
            tf.stack([place[:, 0], child], 1),
            place[:, 1],
        )
        # All nodes climb to their roots at once, and count the merges.
        node = tf.tile(tf.range(2 * time - 1)[tf.newaxis], [texts, 1])

        def climb(
            node: tf.Tensor, depths: tf.Tensor
        ) -> tuple[tf.Tensor, tf.Tensor]:
            slot = tf.gather(slots, node, batch_dims=1)
            below = slot >= 0
            node = tf.where(below, time + slot // 2, node)
            return node, depths + tf.cast(below, tf.int32)

        _, depths = tf.while_loop(
            lambda node, _: tf.reduce_any(
                tf.gather(slots, node, batch_dims=1) >= 0
            ),
            climb,
            (node, tf.zeros_like(node)),
            maximum_iterations=merges,
        )
        return cls(children, slots, depths)


def balanced_children(max_words: int) -> np.ndarray:
    """List the merges of balanced trees over 0 to `max_words` words.

    A text is halved again and again, the left half the longer one.

    Args:
        max_words: Largest number of words, at least 1.

    Returns:
        int32 `[max_words + 1, max_words - 1, 2]`: at index n the children of
        a text of n words as in `Trees`, with `max_words` as `time`.

    Example:
    >>> balanced_children(3)[3].tolist()
    [[0, 1], [3, 2]]
    """
    table = np.zeros((max_words + 1, max_words - 1, 2), np.int32)
    for length in range(2, max_words + 1):
        merges: list[tuple[int, int]] = []

        def root(
            start: int, end: int, merges: list[tuple[int, int]] = merges
        ) -> int:
            """Merge the words from `start` to `end`; return their node."""
            if end - start == 1:
                return start
            middle = (start + end + 1) // 2
            merges.append((root(start, middle), root(middle, end)))
            return max_words + len(merges) - 1

        root(0, length)
        table[length, : length - 1] = merges
    return table
