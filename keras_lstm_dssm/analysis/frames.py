"""Frames: what the analysis finds, as pandas frames for a notebook."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from keras_lstm_dssm.analysis.activations import Activations
from keras_lstm_dssm.analysis.word_effects import SIDES, Growth
from keras_lstm_dssm.errors import import_optional


def frame(found: Any) -> Any:
    """Makes a pandas frame of anything that this package returns.

    Args:
        found: From `activations`, `active_cells`, `keywords`, `topics`,
            `attenuation` or `growth`.

    Returns:
        A `pandas.DataFrame` with a row for each record and its fields as
        columns. Of activations, for each cell at each word of each direction
        of reading: reverse, place, word, cell, and i, f, c, o, y where the
        network has them; of topics: cell, word, query; of a growth: side,
        word, cosine.

    Raises:
        InputError: pandas is not installed.

    Example:
    >>> found = activations(encoder, "hotels in shanghai")
    >>> frame(found).pivot(index="cell", columns=["place", "word"], values="y")
    """
    pandas = import_optional("pandas", "analysis")
    if isinstance(found, Activations):
        return pandas.concat(
            [pandas.DataFrame(_columns(one)) for one in found.directions],
            ignore_index=True,
        )
    if isinstance(found, Growth):
        return pandas.DataFrame(
            list(_steps(found)), columns=["side", "word", "cosine"]
        )
    if isinstance(found, Mapping):
        return pandas.DataFrame(
            [(cell, *one) for cell, taken in found.items() for one in taken],
            columns=["cell", "word", "query"],
        )
    return pandas.DataFrame(found)


def _columns(found: Activations) -> dict[str, Any]:
    """One network's cells at its words, the cells of one word together."""
    words, cells = found.y.shape
    return {
        "reverse": [found.reverse] * found.y.size,
        "place": np.repeat(np.arange(words), cells),
        "word": np.repeat(np.array(found.words, object), cells),
        "cell": np.tile(np.arange(cells), words),
        **{name: array.ravel() for name, array in found.arrays.items()},
    }


def _steps(found: Growth) -> Iterator[tuple[str, str, float]]:
    both = (found.query, found.by_query), (found.document, found.by_document)
    for side, (words, cosines) in zip(SIDES, both, strict=True):
        for word, cosine in zip(words, cosines, strict=True):
            yield side, word, cosine
