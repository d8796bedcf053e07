"""`WeightedParts` computes a weighted sum of cosines as one inner product."""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np


class Part(NamedTuple):
    """A part of a score: a weighted cosine.

    Attributes:
        name: Name in results and in explanations.
        weight: Weight in the score; 0 for an unused part.
        encode: Function from n texts to unit vectors, float32 `[n, width]`.
        width: Number of columns of the vectors; 0 if unknown.
        source: The encoder object that `encode` calls, or None.
    """

    name: str
    weight: float
    encode: Any
    width: int = 0
    source: Any = None


class WeightedParts:
    """Concatenates unit vectors; inner products are weighted sums of cosines.

    Part i has the weight w_i and encodes a text as a unit vector v_i. W is the
    sum of the weights. The vector of the text is `[sqrt(w_1/W) v_1,
    sqrt(w_2/W) v_2, ...]`. The inner product of the vectors of a query Q and a
    document D is sum_i w_i cos_i(Q, D) / W.

    Args:
        parts: The parts. Parts with weight 0 are left out.

    Attributes:
        vectors: The parts (`Part`, not arrays) with a weight above 0.
        vector_weight: W, the sum of the weights.
        scales: sqrt(w_i/W) of each part of `vectors`, float32.
        columns: Name of a part -> the columns of its vector; valid only if all
            parts have a `width`.
        dimension: The sum of the widths.

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
