"""Layers that compare all positions of a query with all document positions."""

from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.errors import check_at_least, check_choice
from keras_lstm_dssm.layers.convolution import near_identity, small_uniform
from keras_lstm_dssm.layers.letter_trigrams import gather_sum
from keras_lstm_dssm.ops import cosine_pairs, unit
from keras_lstm_dssm.registration import Configured, register

Prepared = tuple[tf.Tensor, ...]


class Interaction(keras.layers.Layer):
    """Base of the layers that compare all positions of two texts.

    The result has a cell for each query vector u_i, each document vector v_j
    and each slice k. The value of the cell is f(a_k(u_i) . r(v_j) + o_k(u_i)).
    In this base class, f(x) = x, a_k(u) = u, r(v) = v, and there is no o_k.
    """

    slices = 1

    def prepare_query(self, vectors: tf.Tensor) -> Prepared:
        """Computes a_k `(texts, m, slices, d)` and o_k `(texts, m, slices)`.

        A layer without o_k returns only a_k.
        """
        return (vectors[:, :, tf.newaxis],)

    def prepare_document(self, vectors: tf.Tensor) -> Prepared:
        """Computes r `(texts, n, d)`."""
        return (vectors,)

    def compare(self, query: Prepared, document: Prepared) -> tf.Tensor:
        """Computes cells s `(pairs, m, n, slices)` from prepared texts."""
        return tf.transpose(self.compare_rows(query, document), [0, 1, 3, 2])

    def compare_rows(self, query: Prepared, document: Prepared) -> tf.Tensor:
        """Computes the cells of `compare` as `(pairs, m, slices, n)`."""
        left, right = query[0], document[0]
        pairs, m, *_ = tf.unstack(tf.shape(left))
        rows = tf.reshape(left, [pairs, m * self.slices, left.shape[-1]])
        cells = tf.matmul(rows, right, transpose_b=True)
        cells = tf.reshape(cells, [pairs, m, self.slices, tf.shape(right)[1]])
        for offsets in query[1:]:
            cells += offsets[..., tf.newaxis]
        return self._activate(cells)

    def compare_at(
        self,
        query: tf.Tensor,
        document: tf.Tensor,
        query_index: tf.Tensor,
        document_index: tf.Tensor,
    ) -> tf.Tensor:
        """Computes chosen cells only, `(pairs, slices, k)`.

        `query` and `document` are vectors `(rows, d)` that are not prepared.
        Cell [p, s, i] compares row `query_index[p, s, i]` of `query` with row
        `document_index[p, s, i]` of `document`, in slice s.
        """
        pairs, _, k = tf.unstack(tf.shape(query_index))
        u, v = (
            tf.reshape(
                gather_sum(
                    vectors, tf.reshape(tf.transpose(index, [1, 0, 2]), [-1])
                ),
                [self.slices, pairs * k, vectors.shape[-1]],
            )
            for vectors, index in (
                (query, query_index),
                (document, document_index),
            )
        )
        cells = self._activate(self._compare_each(u, v))
        cells = tf.reshape(cells, [self.slices, pairs, k])
        return tf.transpose(cells, [1, 0, 2])

    def call(self, query: tf.Tensor, document: tf.Tensor) -> tf.Tensor:
        """Compares all positions of each pair."""
        return self.compare(
            self.prepare_query(query), self.prepare_document(document)
        )

    def _compare_each(self, u: tf.Tensor, v: tf.Tensor) -> tf.Tensor:
        """Computes cells before f is applied; u, v are `(slices, cells, d)`."""
        return tf.reduce_sum(u * v, axis=-1)

    def _activate(self, cells: tf.Tensor) -> tf.Tensor:
        return cells


@register
class DotInteraction(Interaction):
    """Computes `s = u . v`, as in the programs of Wan et al. 2016.

    Takes the query vectors u, `(pairs, m, d)`, and the document vectors v,
    `(pairs, n, d)`. Returns a cell s for each u and each v of a pair of texts,
    `(pairs, m, n, 1)`. Cells of padding are not 0, so a pooling must leave out
    these cells.

    Example:
    >>> query = tf.constant([[[3.0, 4.0]]])
    >>> document = tf.constant([[[1.0, 0.0]]])
    >>> float(DotInteraction()(query, document)[0, 0, 0, 0])
    3.0
    """


@register
class CosineInteraction(Interaction):
    """Computes `s = u . v / (|u| |v|)`, Wan et al. 2016.

    A zero vector is replaced by the first basis vector, and has no gradient.
    See `DotInteraction` for the shapes.

    Example:
    >>> query = tf.constant([[[3.0, 4.0]]])
    >>> document = tf.constant([[[1.0, 0.0]]])
    >>> round(float(CosineInteraction()(query, document)[0, 0, 0, 0]), 4)
    0.6
    """

    def prepare_query(self, vectors: tf.Tensor) -> Prepared:
        """Scales the vectors to unit length."""
        return super().prepare_query(unit(vectors))

    def prepare_document(self, vectors: tf.Tensor) -> Prepared:
        """Scales the vectors to unit length."""
        return super().prepare_document(unit(vectors))

    def _compare_each(self, u: tf.Tensor, v: tf.Tensor) -> tf.Tensor:
        return cosine_pairs(u, v)


class WeightedInteraction(Interaction):
    """Base of the interactions with a matrix M for each slice.

    If `rank` is given, M = A A', where A has `rank` columns.
    """

    def __init__(
        self, dimension: int = 100, rank: int | None = 150, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        check_at_least(1, dimension=dimension)
        check_at_least(1, optional=True, rank=rank)
        self.dimension = dimension
        self.rank = rank
        self.built = True

    def _add_factors(self, slices: tuple[int, ...] = ()) -> None:
        # Without `rank`, M starts near the identity. With `rank`, M starts near
        # the identity times rank / 1200. So equal words match before training.
        self.factors = self.add_weight(
            shape=(*slices, self.dimension, self.rank or self.dimension),
            initializer=small_uniform(0.05) if self.rank else near_identity(),
            name="factors" if self.rank else "matrix",
        )

    def matrices(self) -> tf.Tensor:
        """Returns the matrices M, `(..., d, d)`."""
        factors = tf.convert_to_tensor(self.factors)
        if self.rank is None:
            return factors
        return tf.matmul(factors, factors, transpose_b=True)


@register
class BilinearInteraction(WeightedInteraction):
    """Computes `s = u' M v + b`, Wan et al. 2016.

    See `DotInteraction` for the shapes.

    Args:
        dimension: Width of u and of v. Default 100.
        rank: Number of columns of A, where M = A A' and A starts at
            U(-0.05, 0.05), as in the programs of Wan et al. 2016. Default 150.
            With `None`, M has no factors, and starts at the identity plus
            U(-0.01, 0.01).
        **kwargs: Arguments of `keras.layers.Layer`.

    Raises:
        InputError: An argument is less than 1.

    Attributes:
        factors: A, `(dimension, rank)`; M if `rank` is `None`.
        bias: b, a scalar, initially 0.

    Example:
    >>> query, document = tf.ones([1, 2, 4]), tf.ones([1, 3, 4])
    >>> BilinearInteraction(4)(query, document).shape
    TensorShape([1, 2, 3, 1])
    """

    def __init__(
        self, dimension: int = 100, rank: int | None = 150, **kwargs: Any
    ) -> None:
        super().__init__(dimension, rank, **kwargs)
        self._add_factors()
        self.bias = self.add_weight(shape=(), initializer="zeros", name="bias")

    def prepare_query(self, vectors: tf.Tensor) -> Prepared:
        """Computes a = u' M, and o = b."""
        left = tf.matmul(vectors, self.matrices())[:, :, tf.newaxis]
        return left, tf.fill(
            tf.shape(left)[:3], tf.convert_to_tensor(self.bias)
        )

    def _compare_each(self, u: tf.Tensor, v: tf.Tensor) -> tf.Tensor:
        left = tf.matmul(u, self.matrices())
        return super()._compare_each(left, v) + self.bias


@register
class TensorInteraction(WeightedInteraction):
    """Computes `s = relu(u' M^[1:c] v + W [u; v] + b)`, Wan et al. 2016.

    Takes u `(pairs, m, d)` and v `(pairs, n, d)`; returns `(pairs, m, n, c)`.

    Args:
        dimension: Width of u and of v. Default 100.
        slices: The c of the equation, the number of values for each pair of
            positions. Default 5, as in the authors' programs.
        rank: See `BilinearInteraction`. Default 150.
        **kwargs: Arguments of `keras.layers.Layer`.

    Raises:
        InputError: An argument is less than 1.

    Attributes:
        factors: A, `(slices, dimension, rank)`; M if `rank` is `None`.
        linear: W, `(slices, 2 * dimension)`, initially U(-0.05, 0.05).
        bias: b, `(slices,)`, initially 0.

    Example:
    >>> interaction = TensorInteraction(4, slices=3)
    >>> interaction(tf.ones([2, 5, 4]), tf.ones([2, 6, 4])).shape
    TensorShape([2, 5, 6, 3])
    """

    def __init__(
        self,
        dimension: int = 100,
        slices: int = 5,
        rank: int | None = 150,
        **kwargs: Any,
    ) -> None:
        super().__init__(dimension, rank, **kwargs)
        check_at_least(1, slices=slices)
        self.slices = slices
        self._add_factors((slices,))
        self.linear = self.add_weight(
            shape=(slices, 2 * dimension),
            initializer=small_uniform(0.05),
            name="linear",
        )
        self.bias = self.add_weight(
            shape=(slices,), initializer="zeros", name="bias"
        )

    def prepare_query(self, vectors: tf.Tensor) -> Prepared:
        """Computes a = u' M + W_2 and o = W_1 u + b, where W = [W_1, W_2]."""
        texts, m, _ = tf.unstack(tf.shape(vectors))
        first, second = tf.split(tf.convert_to_tensor(self.linear), 2, axis=1)
        matrices = tf.transpose(self.matrices(), [1, 0, 2])
        left = tf.matmul(
            tf.reshape(vectors, [texts * m, self.dimension]),
            tf.reshape(matrices, [self.dimension, -1]),
        )
        left += tf.reshape(second, [-1])
        left = tf.reshape(left, [texts, m, self.slices, self.dimension])
        offsets = tf.matmul(vectors, first, transpose_b=True) + self.bias
        return left, offsets

    def _compare_each(self, u: tf.Tensor, v: tf.Tensor) -> tf.Tensor:
        first, second = tf.split(tf.convert_to_tensor(self.linear), 2, axis=1)
        left = tf.matmul(u, self.matrices()) + second[:, tf.newaxis]
        offsets = tf.matmul(u, first[:, :, tf.newaxis])[:, :, 0]
        return super()._compare_each(left, v) + offsets + self.bias[:, None]

    def _activate(self, cells: tf.Tensor) -> tf.Tensor:
        return tf.nn.relu(cells)


KINDS = ("indirect", "direct", "concat")
ACTIVATIONS = ("sigmoid", "relu", "tanh", "linear")


@register
class PhraseSimilarity(Configured, keras.layers.Layer):
    """Compares the phrases g1 of a query with the phrases g2 of a document.

        indirect: f(g1' W g2 + b), W near the identity at the start
        direct:   exp(-|g1 - g2|^2 / (2 beta)), beta = 2
        concat:   f(w' [g1; g2] + b)

    Yin and Schuetze 2015. A call returns the argument of f or exp. `apply`
    computes f or exp, and is called after max pooling, on fewer cells.
    """

    def __init__(
        self,
        dimension: int,
        kind: str = "indirect",
        activation: str = "sigmoid",
        use_bias: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_choice(KINDS, kind=kind)
        check_choice(ACTIVATIONS, activation=activation)
        self.dimension = dimension
        self.kind = kind
        self.activation = activation
        self.use_bias = use_bias
        self.bias = None
        if kind != "direct":
            indirect = kind == "indirect"
            self.kernel = self.add_weight(
                shape=(dimension if indirect else 2, dimension),
                initializer=near_identity() if indirect else small_uniform(),
                name="kernel",
            )
            if use_bias:
                self.bias = self.add_weight(
                    shape=(), initializer="zeros", name="bias"
                )
        self.built = True

    def project(self, phrases: tf.Tensor) -> tf.Tensor:
        """Multiplies query phrases by W if the kind is `"indirect"`."""
        if self.kind != "indirect":
            return phrases
        return tf.matmul(phrases, tf.convert_to_tensor(self.kernel))

    def call(self, query: tf.Tensor, document: tf.Tensor) -> tf.Tensor:
        """Computes the argument of f or exp; `query` comes from `project`."""
        if self.kind == "direct":
            products = tf.matmul(query, document, transpose_b=True)
            return (products - sums_of_squares(query, document) / 2) / 2
        if self.kind == "indirect":
            values = tf.matmul(query, document, transpose_b=True)
        else:
            query_weights, document_weights = tf.unstack(
                tf.convert_to_tensor(self.kernel)
            )
            rows = tf.linalg.matvec(query, query_weights)[:, :, tf.newaxis]
            columns = tf.linalg.matvec(document, document_weights)
            values = rows + columns[:, tf.newaxis]
        return values if self.bias is None else values + self.bias

    def apply(self, values: tf.Tensor) -> tf.Tensor:
        """Applies f, or exp for `"direct"`, to the result of a call."""
        if self.kind == "direct":
            return tf.exp(values)
        return keras.activations.get(self.activation)(values)


def sums_of_squares(query: tf.Tensor, document: tf.Tensor) -> tf.Tensor:
    """Computes |u_i|^2 + |v_j|^2 for all positions i and j, `(pairs, m, n)`."""
    return (
        tf.reduce_sum(query * query, axis=-1)[:, :, tf.newaxis]
        + tf.reduce_sum(document * document, axis=-1)[:, tf.newaxis]
    )
