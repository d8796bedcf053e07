"""Conversion of texts to string tensors, and loops over batches of them.

The loops encode or score texts in batches of similar length.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
import tensorflow as tf
from tqdm import tqdm

from keras_lstm_dssm.errors import InputError, check_at_least
from lstm_dssm_client.texts import as_bytes, slices_of_size


def as_strings(texts: Any) -> tf.Tensor:
    """Converts a tensor, or any iterable of strings or bytes, to a tensor.

    Raises `InputError` if it is neither strings `(batch,)` nor such an
    iterable. In a graph the rank is checked when it runs, too: TF Serving does
    not compare shapes, and some kernels of TF.Text end a server that gives
    them a scalar.
    """
    if tf.is_tensor(texts):
        if texts.dtype != tf.string or texts.shape.rank not in (1, None):
            raise InputError(
                "expected a tensor of strings [batch], got "
                f"{texts.dtype.name} {texts.shape}"
            )
        return tf.ensure_shape(texts, [None])
    encoded = as_bytes(texts)
    return tf.constant(encoded, tf.string, shape=[len(encoded)])


def clean_texts(texts: Sequence[str | bytes]) -> list[str]:
    """Replaces lone surrogates, which tokenizers do not take."""
    return [text.decode("utf-8", "replace") for text in as_bytes(texts)]


def check_string_input(reader: str, inputs: Any) -> None:
    """Raises `InputError` if a symbolic input is no batch of strings."""
    if inputs.dtype != "string" or len(inputs.shape) != 1:
        raise InputError(
            f"{reader} reads strings (batch,), got "
            f"{inputs.dtype} {tuple(inputs.shape)}; write "
            "keras.Input((), dtype='string')"
        )


_BATCH_BYTES = 1 << 19
_WORKERS = 2  # one thread hashes a batch while the other encodes one

B = TypeVar("B")
R = TypeVar("R")


def run_batches(
    function: Callable[[B], R],
    batches: Sequence[B],
    label: str,
    progress: bool,
    done: int = 0,
) -> Iterator[tuple[B, R]]:
    """Yields each batch and its result, computed two batches at a time.

    The thread-safe function has run for `done` batches before these.
    """
    with ThreadPoolExecutor(_WORKERS) as pool:
        results = pool.map(function, batches)
        total = done + len(batches)
        bar = tqdm(
            results,
            label,
            total,
            leave=False,  # Keras's bar of the epoch is on the same line
            initial=done,
            disable=not progress,
        )
        yield from zip(batches, bar, strict=True)


def encode_in_batches(
    encode: Callable[[tf.Tensor], tf.Tensor],
    texts: Any,
    batch_size: int,
    progress: bool,
) -> np.ndarray:
    """Encodes texts by a TensorFlow function; see `arrays_in_batches`.

    The thread-safe function turns strings `(batch,)` into vectors `(batch, d)`.
    """
    return arrays_in_batches(
        lambda rows: encode(tf.constant(rows, tf.string, [len(rows)])).numpy(),
        texts,
        batch_size,
        progress,
    )


def arrays_in_batches(
    encode: Callable[[list[bytes]], np.ndarray],
    texts: Any,
    batch_size: int,
    progress: bool,
) -> np.ndarray:
    """Encodes texts in batches of similar length, two batches at a time.

    `encode` is thread-safe, from a list of texts to vectors `[batch, d]`.
    Documents are long: a batch has half a megabyte at most, or one text.
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
        return encode(strings)

    def vectors(rows: np.ndarray) -> np.ndarray:
        return encode([strings[row] for row in rows])

    first = vectors(batches[0])
    result = np.empty((len(strings), first.shape[1]), first.dtype)
    result[batches[0]] = first
    for rows, rest in run_batches(vectors, batches[1:], "encode", progress, 1):
        result[rows] = rest
    return result


def score_in_batches(
    score: Callable[[np.ndarray], np.ndarray],
    lengths: list[int],
    batch_size: int,
    progress: bool = False,
) -> np.ndarray:
    """Scores rows in batches of similar length, two batches at a time.

    The thread-safe function turns rows `[n]` into their scores `[n]`. Returns
    `[rows]`, in the order of `lengths`; float32 for no rows.
    """
    check_at_least(1, batch_size=batch_size)
    # The longest first: the two threads then end at about the same time.
    order = np.argsort([-length for length in lengths], kind="stable")
    batches = [
        order[start : start + batch_size]
        for start in range(0, len(order), batch_size)
    ]
    if not batches:
        return np.zeros(0, np.float32)
    result = np.zeros(0)
    for rows, scores in run_batches(score, batches, "score", progress):
        if not len(result):
            result = np.empty(len(order), scores.dtype)
        result[rows] = scores
    return result
