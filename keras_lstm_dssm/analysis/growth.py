"""Growth: the cosine of a query and a title, word by word."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_lstm_dssm.analysis.activations import words_of

SIDES = ("query", "title")
"""What the two towers read, in this order."""


class Growth(NamedTuple):
    """R(Q, D) while one side is read and the other is whole, (3).

    Attributes:
        query: Words of the query.
        by_query: float `[query words]`, after each of them.
        document: Words of the title.
        by_document: float `[title words]`.
    """

    query: tuple[str, ...]
    by_query: np.ndarray
    document: tuple[str, ...]
    by_document: np.ndarray


def growth(model: Any, query: str, document: str) -> Growth:
    """Follows the cosine as the query, and as the title, is read.

    Works for every encoder: the beginnings of a text are encoded as texts.

    Args:
        model: A `TwoTower`.
        query: A query.
        document: A title.

    Example:
    >>> growth(model, "hotels in shanghai", "shanghai hotels").by_query
    array([0.61, 0.6, 0.93], dtype=float32)
    """
    words = [
        words_of(encoder, [text])[0]
        for encoder, text in (
            (model.query_encoder, query),
            (model.document_encoder, document),
        )
    ]
    queries = model.query_encoder.encode(_beginnings(words[0]))
    documents = model.document_encoder.encode(_beginnings(words[1]))
    return Growth(
        words[0], queries @ documents[-1], words[1], documents @ queries[-1]
    )


def _beginnings(words: Sequence[str]) -> list[str]:
    return [" ".join(words[: end + 1]) for end in range(len(words))]
