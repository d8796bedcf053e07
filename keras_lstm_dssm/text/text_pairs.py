"""Scores pairs of texts in batches of similar length."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from tqdm import tqdm

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.text.strings import WORKERS


def score_in_batches(
    score: Callable[[np.ndarray], np.ndarray],
    lengths: list[int],
    batch_size: int,
    progress: bool = False,
) -> np.ndarray:
    """Scores rows in batches of similar length, two batches at a time.

    Args:
        score: Thread-safe function from rows `[n]` to their scores `[n]`.
        lengths: A length for each row; similar ones need little padding.
        batch_size: The number of rows in a batch.
        progress: Whether to show a progress bar.

    Returns:
        Array `[rows]`, in their order; float32 for no rows.

    Raises:
        InputError: `batch_size` is below 1.
    """
    if batch_size < 1:
        raise InputError(f"batch_size must be 1 or more, not {batch_size}")
    # The longest first: the two threads then end at about the same time.
    order = np.argsort([-length for length in lengths], kind="stable")
    batches = [
        order[start : start + batch_size]
        for start in range(0, len(order), batch_size)
    ]
    if not batches:
        return np.zeros(0, np.float32)
    result = np.zeros(0)
    with ThreadPoolExecutor(WORKERS) as pool:
        scored: Iterator[np.ndarray] = pool.map(score, batches)
        bar = tqdm(scored, "score", len(batches), disable=not progress)
        for rows, scores in zip(batches, bar, strict=True):
            if not len(result):
                result = np.empty(len(order), scores.dtype)
            result[rows] = scores
    return result
