"""Convert the results of the analysis into pandas data frames."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from keras_lstm_dssm.analysis.activations import Activations
from keras_lstm_dssm.analysis.word_effects import SIDES, Growth
from keras_lstm_dssm.errors import import_optional


def frame(result: Any) -> Any:
    """Convert a result of this package into a pandas data frame.

    Args:
        result: What `activations`, `active_cells`, `keywords`, `topics`,
            `attenuation` or `growth` returns; or the `sentences` or another
            list of an `ExplainedDocument`.

    Returns:
        A `pandas.DataFrame` with a row for each record and a column for each
        of its fields. Activations have a row for each cell at each word of
        each direction of reading, with the columns reverse, position (of the
        word), word, cell, and those of i, f, c, o, y that the network has;
        topics have the columns cell, word, query; a growth has side, word,
        cosine.

    Raises:
        InputError: pandas is not installed.

    Example:
    >>> read = activations(encoder, "hotels in shanghai")
    >>> frame(read).pivot(
    ...     index="cell", columns=["position", "word"], values="y"
    ... )
    """
    pandas = import_optional("pandas", "analysis")
    if isinstance(result, Activations):
        return pandas.concat(
            [
                pandas.DataFrame(_columns(network))
                for network in result.directions
            ],
            ignore_index=True,
        )
    if isinstance(result, Growth):
        return pandas.DataFrame(
            list(_growth_rows(result)), columns=["side", "word", "cosine"]
        )
    if isinstance(result, Mapping):
        return pandas.DataFrame(
            [(cell, *word) for cell, words in result.items() for word in words],
            columns=["cell", "word", "query"],
        )
    return pandas.DataFrame(result)


def _columns(read: Activations) -> dict[str, Any]:
    """Return the columns for one network, ordered by word and then by cell."""
    words, cells = read.y.shape
    return {
        "reverse": [read.reverse] * read.y.size,
        "position": np.repeat(np.arange(words), cells),
        "word": np.repeat(np.array(read.words, object), cells),
        "cell": np.tile(np.arange(cells), words),
        **{name: array.ravel() for name, array in read.arrays.items()},
    }


def _growth_rows(result: Growth) -> Iterator[tuple[str, str, float]]:
    sides = (
        (result.query_words, result.query_cosines),
        (result.document_words, result.document_cosines),
    )
    for side, (words, cosines) in zip(SIDES, sides, strict=True):
        for word, cosine in zip(words, cosines, strict=True):
            yield side, word, cosine
