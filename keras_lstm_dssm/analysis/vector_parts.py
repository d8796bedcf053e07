"""The parts of a text's vector, and what each part adds to a cosine."""

from typing import Any, NamedTuple

import numpy as np

from keras_lstm_dssm.encoders import (
    BidirectionalLSTMEncoder,
    CombinedEncoder,
    TextEncoder,
)

WHOLE_VECTOR = "whole vector"
"""The name of the part where a vector is not divided into parts."""


class VectorPart(NamedTuple):
    """A range of the numbers of a text's vector.

    Attributes:
        name: What these numbers are, such as "LSTM output".
        start: The position of the first one, counted from 0.
        stop: The position after the last one.

    Example:
    >>> vector_parts(dssm.LSTMEncoder(cells=4))[0][1:]
    (0, 4)
    """

    name: str
    start: int
    stop: int


def vector_parts(encoder: TextEncoder) -> list[VectorPart]:
    """Return the parts of the vectors that an encoder computes.

    A `CombinedEncoder` has four: the final output of its LSTM, the sum of
    trained trigram rows, the sketch of the words, and one number that
    completes the sketch to a fixed norm. The vectors of other encoders are
    one part.

    Example:
    >>> encoder = dssm.CombinedEncoder(cells=32, bag=32, sketch=63)
    >>> vector_parts(encoder)[1]
    VectorPart(name='trigram sum', start=32, stop=64)
    """
    if not isinstance(encoder, CombinedEncoder):
        return [VectorPart(WHOLE_VECTOR, 0, encoder.dimension)]
    widths = {
        "LSTM output": encoder.cells,
        "trigram sum": encoder.bag,
        "word sketch": encoder.sketch,
        "length norm": 1,
    }
    stops = np.cumsum(list(widths.values())).tolist()
    return [
        VectorPart(name, stop - widths[name], stop)
        for name, stop in zip(widths, stops, strict=True)
    ]


def common_parts(model: Any) -> list[VectorPart]:
    """Return the parts of a `TwoTower`'s vectors.

    If the two encoders have different parts, the whole vector is one part.
    """
    parts = vector_parts(model.query_encoder)
    if parts == vector_parts(model.document_encoder):
        return parts
    return [VectorPart(WHOLE_VECTOR, 0, model.query_encoder.dimension)]


def part_products(
    parts: list[VectorPart], vectors: np.ndarray, other: np.ndarray
) -> np.ndarray:
    """Return what each part adds to the inner products with one vector.

    Args:
        parts: Parts that cover the vectors, from `common_parts`.
        vectors: Float `[n, dimension]`.
        other: Float `[dimension]`.

    Returns:
        Float `[n, parts]`; each row adds up to the whole inner product,
        which is the cosine where all vectors have unit length.
    """
    return np.stack(
        [vectors[:, p.start : p.stop] @ other[p.start : p.stop] for p in parts],
        axis=1,
    )


def cell_note(encoder: TextEncoder) -> str:
    """Return a sentence that says which numbers of the vector are cells.

    It begins with a space, and is empty where the vector consists of the
    cells of one network.
    """
    if isinstance(encoder, CombinedEncoder):
        return (
            f" The cells are those of the LSTM: the first {encoder.cells} of "
            f"the vector's {encoder.dimension} numbers."
        )
    if isinstance(encoder, BidirectionalLSTMEncoder):
        return (
            f" Cells from {encoder.cells} on belong to the network that reads "
            "from right to left, and whose final output is at the first word."
        )
    return ""
