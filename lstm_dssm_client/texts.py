"""Texts, pairs of texts and tags as the inputs of requests.

They are checked, converted to UTF-8 and divided into chunks, each of which is
the rows of one request of bounded size.
"""

import numbers
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from lstm_dssm_client.errors import InputError
from lstm_dssm_client.signatures import EXPLAINED_K


def as_bytes(texts: Any) -> list[bytes]:
    """Converts any iterable of strings or bytes to a list of UTF-8 bytes.

    Bytes that Python has decoded with surrogates become the same bytes again;
    any other lone surrogate becomes "?".
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


def distinct_values(values: Sequence[Any]) -> tuple[list[int], np.ndarray]:
    """Finds the distinct values of a sequence.

    Returns the index of the first of each distinct value, and for each value
    the row of its own in that list, integers `[n]`.
    """
    rows: dict[Any, int] = {}
    row_of = [rows.setdefault(value, len(rows)) for value in values]
    first = np.unique(row_of, return_index=True)[1].tolist()
    return first, np.array(row_of, np.intp)


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
    """Converts one query to UTF-8 bytes, see `as_bytes`."""
    if not isinstance(query, str | bytes):
        raise InputError(
            f"query is {query!r:.60} ({type(query).__name__}), expected"
            " one text"
        )
    return as_bytes([query])[0]


def pairs_as_bytes(
    queries: Any, documents: Any
) -> tuple[list[bytes], list[bytes]]:
    """Converts as many queries as documents to UTF-8 bytes, see `as_bytes`."""
    sides = as_bytes(queries), as_bytes(documents)
    if len(sides[0]) != len(sides[1]):
        raise InputError(
            f"found {len(sides[0])} queries and {len(sides[1])} documents:"
            " give one document for each query"
        )
    return sides


def tags_as_bytes(tags: Any) -> bytes:
    """Converts tags to one text in UTF-8, with commas between; b"" for none.

    They are in Unicode's form NFC, in which an accent and its letter are one
    character.
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
        text = stripped.decode("utf-8", "surrogateescape")
        composed = unicodedata.normalize("NFC", text)
        checked.append(composed.encode("utf-8", "surrogateescape"))
    return b",".join(checked)


def slices_of_size(
    sizes: Sequence[int] | np.ndarray, max_rows: int, max_size: int
) -> Iterator[slice]:
    """Divides rows of these sizes into slices of bounded length and size.

    A row above `max_size` is a slice by itself; no slice is empty.
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


# Limits of one request: texts, bytes of texts, hits in the reply, and bytes of
# texts times hits to explain, half of what the exported graphs allow: servers
# that batch pad the rows.
_ROWS = 512
_BYTES = 1 << 19
_HITS = 1 << 18
_EXPLAINED = 1 << 21


def check_count(count: Any, name: str) -> None:
    """Checks a number of results, which is sent as int32."""
    whole = isinstance(count, numbers.Integral) and type(count) is not bool
    if not (whole and 1 <= count < 2**31):
        raise InputError(
            f"{name} is {count}; expected 1 or more, below 2**31, a whole"
            " number"
        )


def rows_for(k: int, name: str = "k") -> int:
    """Returns the maximum number of texts in a request for k results each.

    `name` is the name of k in the error.
    """
    check_count(k, name)
    return min(_ROWS, max(1, _HITS // k))


def chunked(
    texts: Iterable[str | bytes], max_rows: int = _ROWS
) -> Iterator[np.ndarray]:
    """Divides texts into object arrays of bytes, one for each request.

    An array has half a megabyte at most; a longer text is one by itself.
    """
    encoded = as_bytes(texts)
    for rows in slices_of_size(
        [len(text) for text in encoded], max_rows, _BYTES
    ):
        yield np.array(encoded[rows], object)


def chunked_with_count(
    texts: Iterable[str | bytes], count: int, name: str = "k", tags: bytes = b""
) -> Iterator[dict[str, np.ndarray]]:
    """Yields the inputs of requests that ask for `count` results for each text.

    The inputs are `text`, the number of results as `name` and, unless they are
    empty, `tags`.
    """
    for rows in chunked(texts, rows_for(count, name)):
        inputs = {"text": rows, name: np.full(len(rows), count, np.int32)}
        if tags:
            inputs["tags"] = np.full(len(rows), tags, object)
        yield inputs


def chunked_to_explain(
    texts: Iterable[str | bytes], k: int, tags: bytes
) -> Iterator[dict[str, np.ndarray]]:
    """Yields the inputs of requests that ask why k documents were found.

    The inputs are `text`, `k` and `tags`, which b"" leaves out. A reply names
    the words of each text k times, so a request has few texts if they are long,
    or k is large.
    """
    for rows in chunked(texts, rows_for(k)):
        sizes = [min(k, EXPLAINED_K) * len(text) for text in rows]
        for part in slices_of_size(sizes, len(rows), _EXPLAINED):
            count = len(rows[part])
            yield {
                "text": rows[part],
                "k": np.full(count, k, np.int32),
                "tags": np.full(count, tags, object),
            }


def chunked_pairs(
    queries: Sequence[bytes], documents: Sequence[bytes]
) -> Iterator[dict[str, np.ndarray]]:
    """Divides pairs into the inputs `query` and `document` of each request."""
    sizes = [
        len(query) + len(document)
        for query, document in zip(queries, documents, strict=True)
    ]
    for rows in slices_of_size(sizes, _ROWS, _BYTES):
        yield {
            "query": np.array(queries[rows], object),
            "document": np.array(documents[rows], object),
        }
