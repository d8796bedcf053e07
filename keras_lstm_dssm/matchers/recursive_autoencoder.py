"""Recursive autoencoder: trees over the words of texts, and pre-training."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.errors import InputError, check_at_least, check_choice
from keras_lstm_dssm.layers.convolution import small_uniform
from keras_lstm_dssm.layers.word_vectors import WordSequences, WordVectors
from keras_lstm_dssm.private_api import accept_any_inputs
from keras_lstm_dssm.registration import Configured, register


class Trees(NamedTuple):
    """Holds a binary tree over the words of each text.

    `time` is the padded number of words. Nodes 0 to time - 1 are the words.
    Merge k makes node time + k, the parent of two nodes. A text of n words has
    n - 1 merges; the last merge makes the root.
    """

    # int32 `[texts, time - 1, 2]`: left and right child of each merge. A text
    # of n words has merges 0 to n - 2; all further children are 0.
    children: tf.Tensor
    # int32 `[texts, 2 * time - 1]`: position of each node in the flattened
    # `children` of its text. The left child of merge k has position 2 k, the
    # right child has position 2 k + 1. A root and an unused node have -1.
    slots: tf.Tensor
    # int32 `[texts, 2 * time - 1]`: number of merges above each node.
    depths: tf.Tensor

    @classmethod
    def from_children(cls, children: tf.Tensor, lengths: tf.Tensor) -> "Trees":
        """Finds the slot and the depth of each node."""
        texts, merges = tf.shape(children)[0], tf.shape(children)[1]
        time = merges + 1
        is_slot = tf.sequence_mask(2 * (lengths - 1), 2 * merges)
        text_slots = tf.cast(tf.where(is_slot), tf.int32)
        child = tf.boolean_mask(tf.reshape(children, [texts, -1]), is_slot)
        slots = tf.tensor_scatter_nd_update(
            tf.fill([texts, 2 * time - 1], -1),
            tf.stack([text_slots[:, 0], child], 1),
            text_slots[:, 1],
        )
        # `climb` goes one merge up from each node, and adds 1 to the depth. At
        # the root, `climb` does nothing.
        node = tf.tile(tf.range(2 * time - 1)[tf.newaxis], [texts, 1])

        def climb(
            node: tf.Tensor, depths: tf.Tensor
        ) -> tuple[tf.Tensor, tf.Tensor]:
            slot = tf.gather(slots, node, batch_dims=1)
            has_parent = slot >= 0
            node = tf.where(has_parent, time + slot // 2, node)
            return node, depths + tf.cast(has_parent, tf.int32)

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
    """Returns `Trees.children` of balanced trees, for `time = max_words`.

    Row n of the result is the tree of a text of n words, n = 0 to `max_words`.
    """
    table = np.zeros((max_words + 1, max_words - 1, 2), np.int32)
    for length in range(2, max_words + 1):
        merges: list[tuple[int, int]] = []

        def root(
            start: int, end: int, merges: list[tuple[int, int]] = merges
        ) -> int:
            # Merges the words `start` to `end - 1`; returns their root's index.
            if end - start == 1:
                return start
            middle = (start + end + 1) // 2
            merges.append((root(start, middle), root(middle, end)))
            return max_words + len(merges) - 1

        root(0, length)
        table[length, : length - 1] = merges
    return table


TREES = ("greedy", "balanced")

_BATCH = 64  # number of texts in a step of pre-training


@register
class RecursiveAutoencoder(Configured, keras.layers.Layer):
    """Merges the words of a text, two neighbours at a time, into one vector.

        parent:          p = tanh(W_e [c1; c2] + b_e)
        reconstruction:  [c1'; c2'] = tanh(W_d p + b_d)

    The error of two neighbours is |[c1; c2] - [c1'; c2']|^2. See `RAE` for the
    trees and the references.
    """

    def __init__(
        self,
        dimension: int,
        tree: str = "greedy",
        max_words: int = 50,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_choice(TREES, tree=tree)
        check_at_least(1, max_words=max_words)
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
            initializer = "zeros" if len(shape) == 1 else small_uniform()
            weight = self.add_weight(shape, initializer, name=name)
            setattr(self, name, weight)

    def build(self, *shapes: Any) -> None:
        """Does nothing: the constructor has created all weights."""

    def restart(self, seed: int) -> None:
        """Draws new weights from U(-0.1, 0.1), and sets the biases to 0."""
        kernels = self.encoder_kernel, self.decoder_kernel
        for kernel_seed, kernel in enumerate(kernels, seed):
            draw = small_uniform(seed=kernel_seed)
            kernel.assign(draw(kernel.shape, kernel.dtype))
        for bias in self.encoder_bias, self.decoder_bias:
            bias.assign(tf.zeros_like(bias.value))

    def call(self, vectors: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
        """Computes vectors of all nodes, `(texts, 2 * time - 1, dimension)`."""
        if self.tree == "greedy":
            return self._merge_greedily(vectors, lengths)[1]
        return self.encode(vectors, self.trees(vectors, lengths), lengths)

    def trees(self, vectors: tf.Tensor, lengths: tf.Tensor) -> Trees:
        """Chooses a tree for each text."""
        if self.tree == "greedy":
            children = self._merge_greedily(vectors, lengths)[0]
        else:
            time = tf.shape(vectors)[1]
            table = tf.constant(balanced_children(self.max_words))
            children = tf.gather(table, lengths)[:, : time - 1]
            # Inner nodes start at `max_words` in `table`, at `time` in `Trees`.
            is_inner = tf.cast(children >= self.max_words, tf.int32)
            children -= is_inner * (self.max_words - time)
        return Trees.from_children(children, lengths)

    def encode(
        self, vectors: tf.Tensor, trees: Trees, lengths: tf.Tensor
    ) -> tf.Tensor:
        """Computes differentiable vectors of all nodes of given trees."""
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
        """Sums the unfolding errors of each text's inner nodes, `(texts,)`.

        The error of a node is |[x_i; ..; x_j] - [x_i'; ..; x_j']|^2, where x_i
        to x_j are the words below the node, and x_i' to x_j' are decoded from
        the node.
        """
        trees = self.trees(vectors, lengths)
        time = tf.shape(vectors)[1]
        slots = tf.maximum(trees.slots, 0)
        depths = trees.depths[:, :time]

        # Iteration 0 decodes each node from its parent, iteration 1 from its
        # grandparent, and so on. Words without this ancestor add no error.
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
        """Computes parents `(..., dimension)` from children [c1; c2]."""
        return tf.tanh(
            tf.tensordot(pair, self.encoder_kernel, 1) + self.encoder_bias
        )

    def _decode(self, parent: tf.Tensor) -> tf.Tensor:
        """Computes [c1'; c2'], `(..., 2 * dimension)`, from parents."""
        return tf.tanh(
            tf.tensordot(parent, self.decoder_kernel, 1) + self.decoder_bias
        )

    def _plain_error(self, left: tf.Tensor, right: tf.Tensor) -> tf.Tensor:
        pair = tf.concat([left, right], -1)
        return tf.reduce_sum((pair - self._decode(self._encode(pair))) ** 2, -1)

    def _leaves(self, vectors: tf.Tensor) -> tf.Tensor:
        # Zeros for the inner nodes follow the word vectors.
        return tf.pad(vectors, [[0, 0], [0, tf.shape(vectors)[1] - 1], [0, 0]])

    def _append(
        self, k: tf.Tensor, nodes: tf.Tensor, pair: tf.Tensor, lengths: Any
    ) -> tf.Tensor:
        """Encodes children `[texts, 2, dimension]` as node `time + k`.

        If a text has no merge k, the node's vector is 0.
        """
        texts, size = tf.shape(nodes)[0], tf.shape(nodes)[1]
        pair = tf.reshape(pair, [texts, 2 * self.dimension])
        exists = tf.cast(k < lengths - 1, nodes.dtype)[:, tf.newaxis]
        node = tf.fill([texts], (size + 1) // 2 + k)
        return tf.tensor_scatter_nd_update(
            nodes,
            tf.stack([tf.range(texts), node], 1),
            self._encode(pair) * exists,
        )

    def _merge_greedily(
        self, vectors: tf.Tensor, lengths: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        texts, time = tf.shape(vectors)[0], tf.shape(vectors)[1]
        infinite = tf.constant(np.inf, vectors.dtype)
        position = tf.range(time)[tf.newaxis]

        # `row` has the indices of the nodes without a parent, from left to
        # right. `errors[:, i]` is the error of row[:, i] and row[:, i + 1].
        def merge(
            k: tf.Tensor, row: Any, errors: Any, nodes: Any, children: Any
        ) -> tuple[Any, ...]:
            count = lengths - k  # the number of nodes in the row
            first = tf.argmin(
                tf.where(
                    position[:, :-1] < count[:, tf.newaxis] - 1,
                    errors,
                    infinite,
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
            exists = tf.cast(k < lengths - 1, tf.int32)[:, tf.newaxis]
            children = tf.where(
                tf.equal(position[:, :-1, tf.newaxis], k),
                (pair * exists)[:, tf.newaxis],
                children,
            )
            # In `row`, the parent replaces the left child. All nodes after the
            # right child move one position to the left.
            shifted = tf.minimum(
                position + tf.cast(position > first, tf.int32), time - 1
            )
            row = tf.gather(row, shifted, batch_dims=1)
            row = tf.where(position == first, time + k, row)
            around = tf.clip_by_value(
                first + tf.constant([[-1, 0, 1]]), 0, time - 1
            )
            neighbours = tf.gather(
                nodes, tf.gather(row, around, batch_dims=1), batch_dims=1
            )
            new_errors = self._plain_error(
                neighbours[:, :-1], neighbours[:, 1:]
            )
            errors = tf.gather(
                errors, tf.minimum(shifted[:, :-1], time - 2), batch_dims=1
            )
            pairs = position[:, :-1]
            errors = tf.where(pairs == first - 1, new_errors[:, :1], errors)
            errors = tf.where(pairs == first, new_errors[:, 1:], errors)
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


def clip(texts: WordSequences, max_words: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Cuts texts after `max_words` words; returns vectors and lengths."""
    return texts.vectors[:, :max_words], tf.minimum(texts.lengths, max_words)


def pretrain_autoencoder(
    autoencoder: RecursiveAutoencoder,
    words: WordVectors,
    texts: Sequence[str],
    epochs: int,
    learning_rate: float,
    seed: int,
) -> None:
    """Trains a recursive autoencoder on texts, from new weights, by Adam."""
    autoencoder.restart(seed)
    ordered = np.array(sorted(set(texts), key=lambda text: (len(text), text)))
    batches = np.array_split(ordered, -(-len(ordered) // _BATCH))
    optimizer = keras.optimizers.Adam(learning_rate)
    variables = autoencoder.variables
    optimizer.build(variables)

    def step(vectors: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            # Without `watch`, the tape would skip weights frozen by `RAE`.
            tape.watch([variable.value for variable in variables])
            error = autoencoder.unfolding_error(vectors, lengths)
            count = tf.reduce_sum(tf.cast(lengths - 1, error.dtype))
            loss = tf.reduce_sum(error) / tf.maximum(count, 1)
        gradients = tape.gradient(loss, [v.value for v in variables])
        optimizer.apply(gradients, variables)
        return loss

    hashed = [words.distinct(tf.constant(batch)) for batch in batches]
    vectors, lengths = clip(words(hashed[0]), autoencoder.max_words)
    graph = tf.function(step, autograph=False).get_concrete_function(
        tf.TensorSpec([None, None, vectors.shape[-1]], vectors.dtype),
        tf.TensorSpec([None], lengths.dtype),
    )
    random = np.random.default_rng(seed)
    losses = []
    for _ in range(epochs):
        for number in random.permutation(len(batches)):
            sequences = words(hashed[number])
            vectors, lengths = clip(sequences, autoencoder.max_words)
            losses.append(graph(vectors, lengths))
    if not np.any(losses):
        raise InputError(
            f"none of {len(ordered)} texts has two words; pre-train on texts"
            " with several words each"
        )
