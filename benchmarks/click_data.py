"""Clicks for benchmarks: batches of equal size, and logs of any length."""

import itertools
import os
from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.benchmarks.measurement import WARM_STEPS
from keras_lstm_dssm.data import ClickLog, training_batches
from keras_lstm_dssm.errors import InputError

_LINES = 50_000
_QUERY_WORDS = 3
_TITLE_WORDS = 12
_VOCABULARY = 100_000
_SYLLABLES = tuple(
    "".join(letters)
    for letters in itertools.product("bdfgklmnprstvz", "aeiou", ("", "n", "r"))
)


def whole_batches(
    log: ClickLog, batch_size: int, steps: int
) -> tf.data.Dataset:
    """Stream a log as training does, in batches of equal size.

    The small batch at the end of each epoch is left out.

    Args:
        log: The clicks, read as often as needed.
        batch_size: Pairs in a training step.
        steps: Number of training steps to time.

    Returns:
        Batches `(query, document)` of strings, `WARM_STEPS + steps` or more.

    Raises:
        InputError: The log has fewer pairs than one batch.
    """
    batches_in_epoch = log.count() // batch_size
    if not batches_in_epoch:
        raise InputError(
            f"{', '.join(log.paths)}: {log.count()} clicks, fewer than one "
            f"batch of {batch_size}; give a smaller --batch_size"
        )
    epochs = -(-(WARM_STEPS + steps) // batches_in_epoch)
    batches = training_batches(log, batch_size, epochs=epochs, seed=0)
    return batches.filter(lambda query, _: tf.size(query) == batch_size)


def synthetic_lines(pairs: int) -> Iterator[str]:
    r"""Yield the lines of a click log, query TAB title, in blocks.

    Words are drawn from 100,000 by Zipf's law, with frequency 1 / rank. A
    query has 1 to 5 words. A title has 6 to 18 words and begins with those
    of the query, so that there is something to learn. The first n lines do
    not depend on `pairs`.

    Args:
        pairs: Number of lines, one for each pair.

    Example:
    >>> "".join(synthetic_lines(2)).count("\t")
    2
    """
    rng = np.random.default_rng(0)
    words = _words(rng)
    total = np.cumsum(1 / np.arange(1, _VOCABULARY + 1))
    for start in range(0, pairs, _LINES):
        queries = rng.integers(1, 2 * _QUERY_WORDS, _LINES)
        fewest, most = _TITLE_WORDS // 2, 3 * _TITLE_WORDS // 2
        titles = rng.integers(fewest, most + 1, _LINES)
        ends = np.cumsum(titles)
        ranks = np.searchsorted(total, rng.uniform(0, total[-1], ends[-1]))
        drawn = words[ranks].tolist()
        lines = [
            f"{' '.join(drawn[end - n : end - n + q])}\t"
            f"{' '.join(drawn[end - n : end])}\n"
            for q, n, end in zip(
                queries.tolist(), titles.tolist(), ends.tolist(), strict=True
            )
        ]
        yield "".join(lines[: pairs - start])


def write_log(path: str | os.PathLike[str], pairs: int) -> None:
    """Write `synthetic_lines` to a click file."""
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(synthetic_lines(pairs))


def _words(rng: np.random.Generator) -> np.ndarray:
    """Return distinct words of one to four syllables."""
    words: dict[str, None] = {}
    while len(words) < _VOCABULARY:
        for size in (1, 2, 3, 4):
            drawn = rng.choice(_SYLLABLES, (_VOCABULARY // 4, size))
            words.update(dict.fromkeys(map("".join, drawn.tolist())))
    return np.array(list(words)[:_VOCABULARY], object)
