"""Converts texts to string tensors, and encodes them in batches."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import tensorflow as tf
from tqdm import tqdm

from keras_lstm_dssm.errors import InputError


def as_strings(texts: Any) -> tf.Tensor:
    """Converts a tensor, or any iterable of strings or bytes, to a tensor.

    Args:
        texts: String tensor `(batch,)`, or iterable of `str` or `bytes`.

    Returns:
        String tensor `(batch,)`.

    Raises:
        InputError: `texts` is neither, or an element is not a string.
    """
    if tf.is_tensor(texts):
        if texts.dtype != tf.string or texts.shape.rank not in (1, None):
            raise InputError(
                "expected a tensor of strings [batch], got "
                f"{texts.dtype.name} {texts.shape}"
            )
        return texts
    encoded = as_bytes(texts)
    return tf.constant(encoded, tf.string, shape=[len(encoded)])


def as_bytes(texts: Any) -> list[bytes]:
    """Converts any iterable of strings or bytes to a list of UTF-8 bytes.

    Bytes that are not UTF-8 and that Python has decoded with surrogates, as
    from a command line, become the same bytes again; any other lone surrogate
    becomes "?".

    Raises:
        InputError: `texts` is not an iterable, or an element is not a string.
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


_BATCH_BYTES = 1 << 19
WORKERS = 2  # one thread hashes a batch while the other encodes one


def encode_in_batches(
    encode: Callable[[tf.Tensor], tf.Tensor],
    texts: Any,
    batch_size: int,
    progress: bool,
) -> np.ndarray:
    """Encodes texts in batches of similar length, two batches at a time.

    Args:
        encode: Thread-safe function from strings `(batch,)` to vectors
            `(batch, d)`.
        texts: Any iterable of strings.
        batch_size: The number of texts in a batch. Documents are long: a
            batch has half a megabyte at most, or one text.
        progress: Whether to show a progress bar.

    Returns:
        Array `[texts, d]`, in the order of `texts`.

    Raises:
        InputError: An element of `texts` is not a string.
    """
    strings = as_bytes(texts)
    # A batch of texts of similar length needs little padding.
    lengths = np.array([len(text) for text in strings], int)
    order = np.argsort(lengths, kind="stable")
    batches = [
        order[rows]
        for rows in slices_of_size(lengths[order], batch_size, _BATCH_BYTES)
    ]
    if len(batches) <= 1:
        return encode(tf.constant(strings, tf.string, [len(strings)])).numpy()

    def vectors(rows: np.ndarray) -> np.ndarray:
        return encode(tf.constant([strings[row] for row in rows])).numpy()

    first = vectors(batches[0])
    result = np.empty((len(strings), first.shape[1]), first.dtype)
    result[batches[0]] = first
    with ThreadPoolExecutor(WORKERS) as pool:
        encoded = pool.map(vectors, batches[1:])
        bar = tqdm(
            encoded, "encode", len(batches), initial=1, disable=not progress
        )
        for rows, rest in zip(batches[1:], bar, strict=True):
            result[rows] = rest
    return result


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
