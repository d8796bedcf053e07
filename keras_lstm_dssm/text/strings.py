"""Texts as users hand them over, and their way through a graph in batches."""

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
        texts: String tensor `(batch,)`, array, list, tuple, generator.

    Returns:
        String tensor `(batch,)`.

    Raises:
        InputError: It is something else, or an element is.
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
    """Converts any iterable of strings or bytes to a list of UTF-8.

    What Python read from bytes that are not UTF-8, such as a command line,
    becomes those bytes again; any other lone surrogate becomes "?".

    Raises:
        InputError: It is no such iterable.
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
    return [_encoded(place, text) for place, text in enumerate(texts)]


def _encoded(place: int, text: Any) -> bytes:
    if isinstance(text, bytes):
        return text
    if not isinstance(text, str):
        raise InputError(
            f"text {place} is {text!r:.60} ({type(text).__name__}), "
            "expected str or bytes"
        )
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


WORKERS = 2  # one batch is hashed while another is multiplied


def encode_in_batches(
    encode: Callable[[tf.Tensor], tf.Tensor],
    texts: Any,
    batch_size: int,
    progress: bool,
) -> np.ndarray:
    """Encodes texts, those of like length together, two batches at a time.

    Args:
        encode: Strings `(batch,)` to vectors `(batch, d)`; any number of
            threads may call it, and none of them twice for a trace.
        texts: Any iterable of strings.
        batch_size: Texts at once.
        progress: Whether to show a progress bar.

    Returns:
        `[texts, d]`, in the order of `texts`.

    Raises:
        InputError: An element of `texts` is not a string.
    """
    strings = as_bytes(texts)
    if len(strings) <= batch_size:
        return encode(tf.constant(strings, tf.string, [len(strings)])).numpy()
    # Little of a batch is padding when its texts are of like length.
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
        found = pool.map(vectors, batches[1:])
        bar = tqdm(
            found, "encode", len(batches), initial=1, disable=not progress
        )
        for rows, rest in zip(batches[1:], bar, strict=True):
            result[rows] = rest
    return result
