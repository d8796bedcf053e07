"""From the texts, pairs and tags of users to the inputs of requests.

They are checked, converted to UTF-8, and divided into chunks: the rows of one
request, whose number and size are bounded.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from lstm_dssm_client.errors import InputError


def as_bytes(texts: Any) -> list[bytes]:
    """Converts any iterable of strings or bytes to a list of UTF-8 bytes.

    Bytes that are not UTF-8 and that Python has decoded with surrogates, as
    from a command line, become the same bytes again; any other lone surrogate
    becomes "?".

    Raises:
        InputError: `texts` is not an iterable, or an element is not a string.

    Example:
    >>> as_bytes(["bolt", b"Mutter"])
    [b'bolt', b'Mutter']
    """
    if isinstance(texts, str | bytes):
        raise InputError(
            f"expected a list of texts, got one text, {texts!r:.60}; "
            "write [text]"
        )
    if not isinstance(texts, Iterable):
        raise InputError(
            f"expected a list of texts, got {texts!r:.60} "
            f"({type(texts).__name__})"
        )
    return [_encoded(index, text) for index, text in enumerate(texts)]


def _encoded(index: int, text: Any) -> bytes:
    if isinstance(text, bytes):
        return text
    if not isinstance(text, str):
        raise InputError(
            f"text {index} is {text!r:.60} ({type(text).__name__}), "
            "expected str or bytes"
        )
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def query_as_bytes(query: Any) -> bytes:
    """Converts one query to UTF-8 bytes, see `as_bytes`.

    Raises:
        InputError: `query` is not one text.
    """
    if not isinstance(query, str | bytes):
        raise InputError(
            f"query is {query!r:.60} ({type(query).__name__}), expected"
            " one text"
        )
    return as_bytes([query])[0]


def pairs_as_bytes(
    queries: Any, documents: Any
) -> tuple[list[bytes], list[bytes]]:
    """Converts the texts of pairs to UTF-8 bytes, see `as_bytes`.

    Args:
        queries: Any iterable of texts.
        documents: As many documents.

    Raises:
        InputError: The texts are not strings, or not as many documents as
            queries.
    """
    sides = as_bytes(queries), as_bytes(documents)
    if len(sides[0]) != len(sides[1]):
        raise InputError(
            f"found {len(sides[0])} queries and {len(sides[1])} documents:"
            " give one document for each query"
        )
    return sides


def tags_as_bytes(tags: Any) -> bytes:
    """Converts tags to one text, as the signature `filtered` reads them.

    Args:
        tags: Any iterable of tags.

    Returns:
        The tags, separated by commas, in UTF-8; empty for no tags.

    Raises:
        InputError: `tags` is not an iterable of strings, or a tag is blank or
            has a comma, a tab or a line break.

    Example:
    >>> tags_as_bytes(["steel", "in stock"])
    b'steel,in stock'
    """
    if isinstance(tags, str | bytes) or not isinstance(tags, Iterable):
        raise InputError(
            f"expected a list of tags, got {tags!r:.60}; write [tag]"
        )
    checked = []
    for tag in as_bytes(tags):
        stripped = tag.strip()
        if not stripped or any(byte in b",\t\r\n" for byte in stripped):
            raise InputError(
                f"found the tag {tag!r:.60}, expected a tag that is not blank"
                " and has no comma, tab or line break"
            )
        checked.append(stripped)
    return b",".join(checked)


def slices_of_size(
    sizes: Sequence[int] | np.ndarray, max_rows: int, max_size: int
) -> Iterator[slice]:
    """Divides rows into slices of a bounded number and a bounded size.

    Args:
        sizes: The size of each row, such as its number of bytes.
        max_rows: Largest number of rows in a slice.
        max_size: Largest sum of sizes in a slice of several rows.

    Yields:
        Slices that follow each other, none of them empty.

    Example:
    >>> list(slices_of_size([3, 9, 1, 1, 1], 2, 10))
    [slice(0, 1, None), slice(1, 3, None), slice(3, 5, None)]
    """
    start, total = 0, 0
    for row, size in enumerate(sizes):
        full = row - start == max_rows or total + size > max_size
        if row > start and full:
            yield slice(start, row)
            start, total = row, 0
        total += size
    if len(sizes):
        yield slice(start, len(sizes))


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
