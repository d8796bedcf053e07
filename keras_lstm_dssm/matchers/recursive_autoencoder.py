"""RecursiveAutoencoder: vectors of all nodes of a tree over each text."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.matchers.binary_trees import Trees, balanced_children
from keras_lstm_dssm.private_api import accept_any_inputs
from keras_lstm_dssm.registration import register

TREES = ("greedy", "balanced")


def _uniform(seed: int | None) -> keras.initializers.Initializer:
    return keras.initializers.RandomUniform(-0.1, 0.1, seed)


@register
class RecursiveAutoencoder(keras.layers.Layer):
    """Merges the words of a text, two neighbours at a time, into one vector.

    A parent is p = tanh(W_e [c1; c2] + b_e), and its children are
    reconstructed by [c1'; c2'] = tanh(W_d p + b_d). Vectors are not scaled to
    unit length.

    The published model follows the trees of a parser. This layer uses none.
    `"greedy"` trees merge the two neighbours whose plain error
    |[c1; c2] - [c1'; c2']|^2 is least, the first two in a tie, and then
    continue with the parent in their place. `"balanced"` trees halve a text
    again and again, the left half the longer one.

    Args:
        dimension: Width of the word vectors and of all nodes.
        tree: `"greedy"`, the default, or `"balanced"`.
        max_words: Largest number of words of a text. Default 50.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        vectors: Word vectors `(texts, time, dimension)`, `time` from 1 to
            `max_words`.
        lengths: int32 `(texts,)`, number of words of each text, at least 1.

    Returns:
        The vectors of all nodes `(texts, 2 * time - 1, dimension)`, numbered
        as in `Trees`, 0 where there is no node.

    Raises:
        InputError: An argument is not supported.

    Reference: Socher et al. 2011, "Dynamic Pooling and Unfolding Recursive
        Autoencoders for Paraphrase Detection"; greedy trees: Socher et al.
        2011, "Semi-Supervised Recursive Autoencoders for Predicting
        Sentiment Distributions".

    Example:
    >>> autoencoder = RecursiveAutoencoder(4)
    >>> autoencoder(tf.ones([1, 3, 4]), tf.constant([3])).shape
    TensorShape([1, 5, 4])
    """

    def __init__(
        self,
        dimension: int,
        tree: str = "greedy",
        max_words: int = 50,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if tree not in TREES:
            raise InputError(
                f"tree must be one of {', '.join(TREES)}, not {tree!r}"
            )
        if max_words < 1:
            raise InputError(f"max_words must be at least 1, not {max_words}")
        self.dimension = dimension
        self.tree = tree
        self.max_words = max_words
        accept_any_inputs(self)
        self.supports_jit = False
        for name, shape in {
            "encoder_kernel": (2 * dimension, dimension),
            "encoder_bias": (dimension,),
            "decoder_kernel": (dimension, 2 * dimension),
            "decoder_bias": (2 * dimension,),
        }.items():
            initializer = "zeros" if len(shape) == 1 else _uniform(None)
            weight = self.add_weight(shape, initializer, name=name)
            setattr(self, name, weight)

    def build(self, *shapes: Any) -> None:
        """Do nothing: the constructor has created all weights."""

    def restart(self, seed: int) -> None:
        """Draw new weights from U(-0.1, 0.1), and set the biases to 0."""
        for number, kernel in enumerate(
            (self.encoder_kernel, self.decoder_kernel)
        ):
            kernel.assign(_uniform(seed + number)(kernel.shape, kernel.dtype))
        for bias in self.encoder_bias, self.decoder_bias:
            bias.assign(tf.zeros_like(bias.value))

    def call(self, vectors: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
        """Compute the vectors of all nodes."""
        if self.tree == "greedy":
            return self._merge_greedily(vectors, lengths)[1]
        return self.encode(vectors, self.trees(vectors, lengths), lengths)

    def trees(self, vectors: tf.Tensor, lengths: tf.Tensor) -> Trees:
        """Choose a tree for each text; for the arguments see the class."""
        if self.tree == "greedy":
            children = self._merge_greedily(vectors, lengths)[0]
        else:
            time = tf.shape(vectors)[1]
            table = tf.constant(balanced_children(self.max_words))
            children = tf.gather(table, lengths)[:, : time - 1]
            # The table numbers merges from max_words, a batch from `time`.
            merged = tf.cast(children >= self.max_words, tf.int32)
            children -= merged * (self.max_words - time)
        return Trees.from_children(children, lengths)

    def encode(
        self, vectors: tf.Tensor, trees: Trees, lengths: tf.Tensor
    ) -> tf.Tensor:
        """Compute the nodes of given trees, with a gradient.

        Args:
            vectors: As for a call.
            trees: The tree of each text.
            lengths: As for a call.

        Returns:
            As for a call.
        """
        merges = tf.shape(vectors)[1] - 1

        def merge(k: tf.Tensor, nodes: tf.Tensor) -> tuple[Any, Any]:
            pair = tf.gather(nodes, trees.children[:, k], batch_dims=1)
            return k + 1, self._append(k, nodes, pair, lengths)

        _, nodes = tf.while_loop(
            lambda k, _: k < merges,
            merge,
            (tf.constant(0), self._leaves(vectors)),
            maximum_iterations=self.max_words - 1,
        )
        return nodes

    def unfolding_error(
        self, vectors: tf.Tensor, lengths: tf.Tensor
    ) -> tf.Tensor:
        """Compute how badly the inner nodes give back their words.

        Each inner node is decoded down its own subtree to the words
        x_i .. x_j below it. Its error is |[x_i; ..; x_j] - [x_i'; ..; x_j']|^2.

        Args:
            vectors: As for a call.
            lengths: As for a call.

        Returns:
            The sum over the inner nodes of each text, `(texts,)`; 0 for a
            text of one word. The choice of the tree has no gradient.
        """
        trees = self.trees(vectors, lengths)
        time = tf.shape(vectors)[1]
        slots = tf.maximum(trees.slots, 0)
        depths = trees.depths[:, :time]

        # A node has at most one ancestor `level` merges above it. All nodes
        # are decoded from these ancestors at once, one level after another.
        def unfold(
            level: tf.Tensor, decoded: tf.Tensor, error: tf.Tensor
        ) -> tuple[Any, Any, Any]:
            pairs = self._decode(decoded[:, time:])
            pairs = tf.reshape(
                pairs, [tf.shape(vectors)[0], 2 * (time - 1), self.dimension]
            )
            decoded = tf.gather(pairs, slots, batch_dims=1)
            square = tf.reduce_sum((decoded[:, :time] - vectors) ** 2, -1)
            square = tf.where(depths > level, square, tf.zeros_like(square))
            return level + 1, decoded, error + tf.reduce_sum(square, 1)

        _, _, error = tf.while_loop(
            lambda level, *_: level < tf.reduce_max(depths),
            unfold,
            (
                tf.constant(0),
                self.encode(vectors, trees, lengths),
                tf.zeros_like(vectors[:, 0, 0]),
            ),
            maximum_iterations=self.max_words - 1,
        )
        return error

    def _encode(self, pair: tf.Tensor) -> tf.Tensor:
        """Compute p of `(..., 2 * dimension)`."""
        return tf.tanh(
            tf.tensordot(pair, self.encoder_kernel, 1) + self.encoder_bias
        )

    def _decode(self, parent: tf.Tensor) -> tf.Tensor:
        """Compute [c1'; c2'] of `(..., dimension)`."""
        return tf.tanh(
            tf.tensordot(parent, self.decoder_kernel, 1) + self.decoder_bias
        )

    def _plain_error(self, left: tf.Tensor, right: tf.Tensor) -> tf.Tensor:
        pair = tf.concat([left, right], -1)
        return tf.reduce_sum((pair - self._decode(self._encode(pair))) ** 2, -1)

    def _leaves(self, vectors: tf.Tensor) -> tf.Tensor:
        """Append zeros for the inner nodes."""
        return tf.pad(vectors, [[0, 0], [0, tf.shape(vectors)[1] - 1], [0, 0]])

    def _append(
        self, k: tf.Tensor, nodes: tf.Tensor, pair: tf.Tensor, lengths: Any
    ) -> tf.Tensor:
        """Write the parent of children `[texts, 2, dimension]` as merge k."""
        texts, size = tf.shape(nodes)[0], tf.shape(nodes)[1]
        pair = tf.reshape(pair, [texts, 2 * self.dimension])
        real = tf.cast(k < lengths - 1, nodes.dtype)[:, tf.newaxis]
        node = tf.fill([texts], (size + 1) // 2 + k)
        return tf.tensor_scatter_nd_update(
            nodes,
            tf.stack([tf.range(texts), node], 1),
            self._encode(pair) * real,
        )

    def _merge_greedily(
        self, vectors: tf.Tensor, lengths: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Return the children of `Trees`, and the vectors of all nodes."""
        texts, time = tf.shape(vectors)[0], tf.shape(vectors)[1]
        infinite = tf.constant(np.inf, vectors.dtype)
        position = tf.range(time)[tf.newaxis]

        # `row` has the nodes that are not merged yet from left to right, and
        # `errors[:, i]` is the plain error of row[:, i] and row[:, i + 1].
        def merge(
            k: tf.Tensor, row: Any, errors: Any, nodes: Any, children: Any
        ) -> tuple[Any, ...]:
            left = lengths - k  # the number of nodes in the row
            first = tf.argmin(
                tf.where(
                    position[:, :-1] < left[:, tf.newaxis] - 1, errors, infinite
                ),
                axis=1,
                output_type=tf.int32,
            )[:, tf.newaxis]
            pair = tf.gather(
                row, tf.concat([first, first + 1], 1), batch_dims=1
            )
            nodes = self._append(
                k, nodes, tf.gather(nodes, pair, batch_dims=1), lengths
            )
            real = tf.cast(k < lengths - 1, tf.int32)[:, tf.newaxis]
            children = tf.where(
                tf.equal(position[:, :-1, tf.newaxis], k),
                (pair * real)[:, tf.newaxis],
                children,
            )
            # The parent takes the place of both children.
            shifted = tf.minimum(
                position + tf.cast(position > first, tf.int32), time - 1
            )
            row = tf.gather(row, shifted, batch_dims=1)
            row = tf.where(position == first, time + k, row)
            around = tf.clip_by_value(
                first + tf.constant([[-1, 0, 1]]), 0, time - 1
            )
            three = tf.gather(
                nodes, tf.gather(row, around, batch_dims=1), batch_dims=1
            )
            two = self._plain_error(three[:, :-1], three[:, 1:])
            errors = tf.gather(
                errors, tf.minimum(shifted[:, :-1], time - 2), batch_dims=1
            )
            pairs = position[:, :-1]
            errors = tf.where(pairs == first - 1, two[:, :1], errors)
            errors = tf.where(pairs == first, two[:, 1:], errors)
            return k + 1, row, errors, nodes, children

        _, _, _, nodes, children = tf.while_loop(
            lambda k, *_: k < time - 1,
            merge,
            (
                tf.constant(0),
                tf.tile(position, [texts, 1]),
                self._plain_error(vectors[:, :-1], vectors[:, 1:]),
                self._leaves(vectors),
                tf.zeros([texts, time - 1, 2], tf.int32),
            ),
            maximum_iterations=self.max_words - 1,
        )
        return children, nodes

    def get_config(self) -> dict[str, Any]:
        """Return the constructor arguments as a dict, for `from_config`."""
        return {
            **super().get_config(),
            "dimension": self.dimension,
            "tree": self.tree,
            "max_words": self.max_words,
        }
