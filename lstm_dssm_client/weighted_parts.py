"""`WeightedParts` computes a weighted sum of cosines as one inner product."""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np


class Part(NamedTuple):
    """A part of a score: a weighted cosine."""

    name: str  # name of the part in results and explanations
    weight: float  # 0 for an unused part
    encode: Any  # function from n texts to unit vectors, float32 [n, width]
    width: int = 0  # width of the vectors; 0 if it is unknown
    source: Any = None  # the encoder that `encode` calls


class WeightedParts:
    """Concatenates unit vectors; inner products are weighted sums of cosines.

    The unit vectors of part i are multiplied by sqrt(w_i / W), where W is the
    sum of the weights w_i. The inner product of the vectors of a query Q and a
    document D is therefore sum_i w_i cos_i(Q, D) / W.

    Example:
    >>> encode = lambda texts: np.ones((len(texts), 1))
    >>> parts = Part("towers", 0.36, encode), Part("words", 0.64, encode)
    >>> WeightedParts(parts).encode(["hex bolt"]).round(1)
    array([[0.6, 0.8]])
    """

    def __init__(self, parts: Iterable[Part]) -> None:
        self.vectors = [part for part in parts if part.weight]
        self.vector_weight = math.fsum(part.weight for part in self.vectors)
        self.scales = [
            np.float32(np.sqrt(part.weight / self.vector_weight))
            for part in self.vectors
        ]
        # `columns` and `dimension` are valid only if every part has a `width`.
        self.columns: dict[str, slice] = {}
        self.dimension = 0
        for part in self.vectors:
            end = self.dimension + part.width
            self.columns[part.name] = slice(self.dimension, end)
            self.dimension = end

    def scaled(self, vectors: Iterable[Any]) -> list[Any]:
        """Multiplies the vectors of each part by the scale of the part."""
        return [s * v for s, v in zip(self.scales, vectors, strict=True)]

    def encode(self, texts: Any) -> np.ndarray:
        """Encodes n texts with all parts, `[n, dimension]`."""
        vectors = [part.encode(texts) for part in self.vectors]
        return np.concatenate(self.scaled(vectors), axis=1)
