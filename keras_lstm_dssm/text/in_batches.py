"""Any number of texts through a graph that encodes one batch."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import tensorflow as tf
from tqdm import tqdm

from keras_lstm_dssm.text.strings import as_bytes

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
