"""`Part`: columns of an encoder's vectors, and the layers they come from."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from keras_lstm_dssm.layers.cosine import unit
from keras_lstm_dssm.layers.letter_trigrams import gather_sum
from keras_lstm_dssm.text.word_batch import WordBatch

TOWERS, WORDS, SKETCH = "towers", "words", "sketch"
"""Kinds of parts: trained on clicks, fitted to a teacher, and random signs."""


def sum_words(layer: Any, words: WordBatch, training: bool = False) -> Any:
    """Sums a layer's rows of words over each distinct text, `(texts, width)`.

    The layer computes a row for each distinct word.
    """
    rows = layer(words, training=training)
    return gather_sum(rows, *words.flat(), training=training)


@dataclass(frozen=True)  # Keras would track the layers in a `NamedTuple`
class Part:
    """Columns of the vectors that an encoder computes.

    Attributes:
        kind: `TOWERS`, `WORDS` or `SKETCH`.
        widths: Name -> number of columns.
        layers: The layers that are read.
        length: What the columns of length 1 are multiplied by.
        read: From the layers, a `WordBatch`, and whether a gradient will be
            computed, to vectors of the distinct texts, of any length.
        scale: From these vectors to columns of length 1.
    """

    kind: str
    widths: Mapping[str, int]
    layers: Sequence[Any]
    length: float = 1.0
    read: Callable[..., tf.Tensor] = sum_words
    scale: Callable[[tf.Tensor], tf.Tensor] = unit

    def compose(self, words: WordBatch, training: bool = False) -> tf.Tensor:
        """Computes the vectors that are to be scaled."""
        return self.read(*self.layers, words, training)


def columns(
    parts: Sequence[Part], words: WordBatch, training: bool = False
) -> tf.Tensor:
    """Computes the columns of parts, side by side, `(texts, width)`."""
    return scaled(parts, [part.compose(words, training) for part in parts])


def scaled(parts: Sequence[Part], vectors: Sequence[tf.Tensor]) -> tf.Tensor:
    """Scales and concatenates what parts have composed."""
    pairs = zip(parts, vectors, strict=True)
    return tf.concat([p.scale(y) * p.length for p, y in pairs], axis=-1)


def widths(parts: Sequence[Part]) -> dict[str, int]:
    """Returns the names and numbers of columns of all parts."""
    return {name: n for part in parts for name, n in part.widths.items()}
