"""`WeightedParts`: the vectors of several parts of a score as one vector.

The hybrids of evaluation, of exported graphs and of `LocalModel` join their
vectors by this class.
"""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np


class Part(NamedTuple):
    """A part of a score that is a cosine.

    Attributes:
        name: Its name in results and in explanations.
        weight: Its weight; 0 for a part that is not used.
        encode: Function from n texts to unit vectors, float32 `[n, width]`.
        width: Number of columns of these vectors, where it is known.
        source: What computes the vectors, of a type that the user of the part
            knows.
    """

    name: str
    weight: float
    encode: Any
    width: int = 0
    source: Any = None


class WeightedParts:
    """The parts of the score sum_i w_i cos_i(Q, D), and their vectors as one.

    With unit vectors v_i of the parts, and W the sum of their weights, the
    vector of a text is `[sqrt(w_1/W) v_1, sqrt(w_2/W) v_2, ...]`:
    the inner product of two such vectors is sum_i w_i cos_i / W.

    Args:
        parts: The parts. Those of weight 0 are left out.

    Attributes:
        vectors: The parts that are used.
        vector_weight: W.
        scales: The square root of w_i/W of each of `vectors`, float32.
        columns: Name of a part -> its columns in the vectors.

    Example:
    >>> vectors = Part("towers", 0.36, np.ones), Part("words", 0.64, np.ones)
    >>> WeightedParts(vectors).encode([1, 1]).round(1)
    array([[0.6, 0.8]])
    """

    def __init__(self, parts: Iterable[Part]) -> None:
        self.vectors = [part for part in parts if part.weight]
        self.vector_weight = math.fsum(part.weight for part in self.vectors)
        self.scales = [
            np.float32(np.sqrt(part.weight / self.vector_weight))
            for part in self.vectors
        ]
        self.columns: dict[str, slice] = {}
        self.dimension = 0
        for part in self.vectors:
            end = self.dimension + part.width
            self.columns[part.name] = slice(self.dimension, end)
            self.dimension = end

    def scaled(self, vectors: Iterable[Any]) -> list[Any]:
        """Scales the vectors of each part, arrays or tensors."""
        return [s * v for s, v in zip(self.scales, vectors, strict=True)]

    def encode(self, texts: Any) -> np.ndarray:
        """Encodes n texts by all parts with vectors: `[n, dimension]`."""
        vectors = [part.encode(texts) for part in self.vectors]
        return np.concatenate(self.scaled(vectors), axis=1)
