"""ConcatenatedEncoder: one vector whose cosine is a weighted sum of cosines."""

from collections.abc import Mapping, Sequence

import numpy as np

from keras_lstm_dssm.evaluation.index import Encode, encode_texts, unit_vectors


class ConcatenatedEncoder:
    """Encodes texts by several encoders, into one vector of unit length.

    With unit vectors v_i(t) and weights w_i that sum to 1, the vector is
    `[sqrt(w_1) v_1(t), sqrt(w_2) v_2(t), ...]`. The inner product of a query's
    and a document's vector is then exactly sum_i w_i cos(v_i(Q), v_i(D)).
    Two columns at the end are 0, unless an encoder gives a zero vector: they
    then bring it to unit length, and add nothing to an inner product.

    Args:
        encoders: Name -> function from n texts to float `[n, d_i]`.
        weights: Name -> weight, above 0; their sum is 1.
        side: `"query"` or `"document"`: which of the last two columns fills
            the vector.

    Example:
    >>> encoder = ConcatenatedEncoder(
    ...     {"a": encode_a, "b": encode_b}, {"a": 0.7, "b": 0.3}, "query"
    ... )
    >>> encoder.encode(["angle bracket"]).shape
    (1, 482)
    """

    def __init__(
        self,
        encoders: Mapping[str, Encode],
        weights: Mapping[str, float],
        side: str,
    ) -> None:
        self._encoders = encoders
        self._weights = weights
        self._filled = ("query", "document").index(side)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Encodes n texts.

        Args:
            texts: The texts; each distinct one is encoded once.

        Returns:
            float32 `[n, d_1 + d_2 + ... + 2]`, rows of length 1.

        Raises:
            InputError: An encoder gives an array of another shape, or a
                number that is not finite.
        """
        texts = list(texts)
        columns = []
        fill = np.zeros([len(texts), 2], np.float32)
        for name, encode in self._encoders.items():
            vectors = unit_vectors(
                encode_texts(encode, texts), f"{name}: vector"
            )
            weight = self._weights[name]
            columns.append(np.float32(np.sqrt(weight)) * vectors)
            fill[:, self._filled] += weight * ~vectors.any(axis=1)
        return np.concatenate([*columns, np.sqrt(fill)], axis=1)
