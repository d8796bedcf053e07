"""Converts texts to string tensors, and encodes them in batches."""

from collections.abc import Callable, Iterable
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
        batch_size: The number of texts in a batch.
        progress: Whether to show a progress bar.

    Returns:
        Array `[texts, d]`, in the order of `texts`.

    Raises:
        InputError: An element of `texts` is not a string.
    """
    strings = as_bytes(texts)
    if len(strings) <= batch_size:
        return encode(tf.constant(strings, tf.string, [len(strings)])).numpy()
    # A batch of texts of similar length needs little padding.
    order = np.argsort([len(text) for text in strings], kind="stable")
    batches = [
        order[start : start + batch_size]
        for start in range(0, len(order), batch_size)
    ]

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
