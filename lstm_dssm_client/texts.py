"""Checks texts and tags, converts them to bytes, and divides them."""

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
