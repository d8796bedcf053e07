"""Texts in chunks that one request may hold, and the hits of a reply."""

from collections.abc import Iterable, Iterator

import numpy as np

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.index import Hit
from keras_lstm_dssm.text import as_bytes

# The most in one request: texts, bytes of texts, hits in the reply.
_ROWS = 512
_BYTES = 1 << 19
_HITS = 1 << 18


def rows_for(k: int) -> int:
    """Returns how many queries a request may hold that asks for k hits each.

    Raises:
        InputError: k is below 1, or above what int32 holds.
    """
    if not 1 <= k < 2**31:
        raise InputError(f"k is {k}; expected 1 or more, below 2**31")
    return min(_ROWS, max(1, _HITS // k))


def chunked(
    texts: Iterable[str | bytes], max_rows: int = _ROWS
) -> Iterator[np.ndarray]:
    """Divides texts into chunks for one request each.

    Args:
        texts: n texts.
        max_rows: The most texts in a chunk.

    Yields:
        Object arrays of bytes, none of them empty, of half a megabyte at
        most; a longer text is a chunk by itself.

    Raises:
        InputError: `texts` is not an iterable of strings or bytes.
    """
    chunk: list[bytes] = []
    size = 0
    for text in as_bytes(texts):
        if chunk and (len(chunk) == max_rows or size + len(text) > _BYTES):
            yield np.array(chunk, object)
            chunk, size = [], 0
        chunk.append(text)
        size += len(text)
    if chunk:
        yield np.array(chunk, object)


def hits_from_outputs(
    ids: np.ndarray, scores: np.ndarray, k: int
) -> list[list[Hit]]:
    """Returns the hits in a retriever's outputs.

    Args:
        ids: Bytes `[batch, width]`, best first; empty where a row has no
            further hit.
        scores: float32 `[batch, width]`.
        k: The most hits of a query. The width is larger when the server
            computed the request together with another one of a larger k.
    """
    return [
        [
            Hit(key.decode(errors="replace"), score)
            for key, score in zip(*row, strict=True)
            if key
        ]
        for row in zip(ids[:, :k], scores[:, :k].tolist(), strict=True)
    ]
