"""Document vectors of a retriever, stored as float32 or int8."""

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.settings import choices


class Float32Vectors(tf.Module):
    """Stores vectors as float32, 4 bytes a number.

    Args:
        vectors: Unit vectors, `[n, d]`.

    Attributes:
        count: The number of vectors, n.
    """

    names = ("rows",)
    """The variables, which `stored` gives the values of."""

    @staticmethod
    def stored(vectors: np.ndarray) -> tuple[np.ndarray, ...]:
        """Returns the values of the variables that store vectors."""
        return (vectors,)

    @classmethod
    def from_stored(cls, rows: np.ndarray) -> "Float32Vectors":
        """Makes the module from the values of its variables."""
        return cls(rows)

    def __init__(self, vectors: np.ndarray) -> None:
        super().__init__()
        self.count = len(vectors)
        # Variables, not constants: a graph is limited to 2 GiB.
        self.rows = tf.Variable(vectors, trainable=False, dtype=tf.float32)

    def cosines(
        self, queries: tf.Tensor, start: tf.Tensor, stop: tf.Tensor
    ) -> tf.Tensor:
        """Computes the cosines of queries and a range of documents.

        Args:
            queries: Unit vectors, float32 `[batch, d]`.
            start: Row of the first document, an int32 scalar.
            stop: Row after the last document, an int32 scalar.

        Returns:
            float32 `[batch, stop - start]`.
        """
        rows = self.rows[start:stop]
        return tf.matmul(queries, rows, transpose_b=True)

    def cosines_of_rows(self, queries: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
        """Computes the cosines of each query and its own documents.

        Args:
            queries: Unit vectors, float32 `[batch, d]`.
            rows: Rows of the documents, int32 `[batch, k]`.

        Returns:
            float32 `[batch, k]`.
        """
        vectors = tf.gather(self.rows, rows)
        return tf.linalg.matvec(vectors, queries)


class Int8Vectors(tf.Module):
    """Stores vectors as integers from -127 to 127, 1 byte a number.

    Each vector has its own scale: its largest number becomes 127. Inner
    products are divided by the length of the rounded vector, so that a
    score is the exact cosine of the query, which is not rounded, and the
    rounded vector. A vector of 96 numbers takes 100 bytes instead of 384.

    One scale for each dimension would save the 4 bytes of the length, but it
    rounds more coarsely, because a vector's own largest number is smaller
    than the largest of all vectors: on 53,489 product titles, recall@10
    compared with float32 was 0.993 with a scale for each vector and 0.980
    with a scale for each dimension.

    Args:
        vectors: Unit vectors, `[n, d]`.

    Attributes:
        count: The number of vectors, n.
    """

    names = ("codes", "scales")
    """The variables, which `stored` gives the values of."""

    @staticmethod
    def stored(vectors: np.ndarray) -> tuple[np.ndarray, ...]:
        """Returns the values of the variables that store vectors."""
        return int8_codes(vectors)

    @classmethod
    def from_stored(
        cls, codes: np.ndarray, scales: np.ndarray
    ) -> "Int8Vectors":
        """Makes the module from the values of its variables."""
        module = cls.__new__(cls)
        module._hold(codes, scales)
        return module

    def __init__(self, vectors: np.ndarray) -> None:
        self._hold(*int8_codes(vectors))

    def _hold(self, codes: np.ndarray, scales: np.ndarray) -> None:
        tf.Module.__init__(self)
        self.count = len(codes)
        self.codes = tf.Variable(codes, trainable=False)
        self.scales = tf.Variable(scales, trainable=False)

    def cosines(
        self, queries: tf.Tensor, start: tf.Tensor, stop: tf.Tensor
    ) -> tf.Tensor:
        """Computes cosines; see `Float32Vectors.cosines`."""
        # CPU kernels multiply floats only. The floats of one block stay in
        # the cache, so memory is read at 1 byte a number.
        rows = tf.cast(self.codes[start:stop], tf.float32)
        products = tf.matmul(queries, rows, transpose_b=True)
        return products * self.scales[start:stop]

    def cosines_of_rows(self, queries: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
        """Computes cosines; see `Float32Vectors.cosines_of_rows`."""
        codes = tf.cast(tf.gather(self.codes, rows), tf.float32)
        products = tf.linalg.matvec(codes, queries)
        return products * tf.gather(self.scales, rows)


def int8_codes(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rounds vectors to integers, each vector on its own scale.

    Args:
        vectors: Float `[n, d]`, without a row of zeros.

    Returns:
        Codes, int8 `[n, d]`, and scales, float32 `[n]`; `codes * scales` are
        vectors of length 1.

    Example:
    >>> int8_codes(np.array([[0.6, -0.8]], np.float32))
    (array([[  95, -127]], dtype=int8), array([0.00630517], dtype=float32))
    """
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    codes = np.rint(vectors * (127 / largest)).astype(np.int8)
    lengths = np.linalg.norm(codes.astype(np.float32), axis=1)
    return codes, 1 / lengths


DocumentVectors = Float32Vectors | Int8Vectors

VECTORS: dict[str, type[DocumentVectors]] = dict(
    zip(choices.VECTORS, (Float32Vectors, Int8Vectors), strict=True)
)
"""Classes by the values of `lstm-dssm-export --vectors`."""
