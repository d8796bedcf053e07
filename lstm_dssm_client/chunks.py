"""Divides texts into the chunks of requests."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from lstm_dssm_client.errors import InputError
from lstm_dssm_client.texts import as_bytes, slices_of_size

# Limits of one request: texts, bytes of texts, hits in the reply.
_ROWS = 512
_BYTES = 1 << 19
_HITS = 1 << 18


def rows_for(k: int, name: str = "k") -> int:
    """Returns the maximum number of texts in a request for k results each.

    Args:
        k: Number of results for each text.
        name: The name of the argument, for the error.

    Raises:
        InputError: k is below 1, or too large for int32.
    """
    if not 1 <= k < 2**31:
        raise InputError(f"{name} is {k}; expected 1 or more, below 2**31")
    return min(_ROWS, max(1, _HITS // k))


def chunked(
    texts: Iterable[str | bytes], max_rows: int = _ROWS
) -> Iterator[np.ndarray]:
    """Divides texts into chunks for one request each.

    Args:
        texts: Any number of texts.
        max_rows: Maximum number of texts in a chunk, by default 512.

    Yields:
        Object arrays of bytes, none of them empty, of half a megabyte at
        most; a longer text is a chunk by itself.

    Raises:
        InputError: `texts` is not an iterable of strings or bytes.
    """
    encoded = as_bytes(texts)
    for rows in slices_of_size(
        [len(text) for text in encoded], max_rows, _BYTES
    ):
        yield np.array(encoded[rows], object)


def chunked_pairs(
    queries: Sequence[bytes], documents: Sequence[bytes]
) -> Iterator[dict[str, np.ndarray]]:
    """Divides pairs into the inputs of a scorer, for one request each.

    Args:
        queries: Any number of queries.
        documents: As many documents.

    Yields:
        `query` and `document`, arrays as from `chunked`, of 512 pairs at
        most.
    """
    sizes = [
        len(query) + len(document)
        for query, document in zip(queries, documents, strict=True)
    ]
    for rows in slices_of_size(sizes, _ROWS, _BYTES):
        yield {
            "query": np.array(queries[rows], object),
            "document": np.array(documents[rows], object),
        }
