"""`Part`: columns of an encoder's vectors, and the layers they come from."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from keras_lstm_dssm.layers.letter_trigrams import gather_sum
from keras_lstm_dssm.ops import unit
from keras_lstm_dssm.text.word_hashing import WordBatch

TOWERS, WORDS, SKETCH = "towers", "words", "sketch"
"""Kinds of parts: trained on clicks, fitted to a teacher, and random signs."""


def sum_words(layer: Any, words: WordBatch, training: bool = False) -> Any:
    """Returns, for each distinct text, the sum of its words' vectors.

    The layer computes a vector for each distinct word; the result is
    `(texts, width)`.
    """
    rows = layer(words, training=training)
    return gather_sum(rows, *words.flat(), training=training)


@dataclass(frozen=True)  # Keras would track the layers in a `NamedTuple`
class Part:
    """A part of the vectors that an encoder computes: some of their columns.

    Attributes:
        kind: `TOWERS`, `WORDS` or `SKETCH`.
        widths: Name -> number of columns.
        layers: The layers whose weights the columns depend on.
        length: The Euclidean length of the part in a vector.
        read: Function that computes a vector for each distinct text, of any
            length, from the layers, a `WordBatch`, and whether a gradient
            will be computed.
        scale: Function that scales such vectors to length 1.
    """

    kind: str
    widths: Mapping[str, int]
    layers: Sequence[Any]
    length: float = 1.0
    read: Callable[..., tf.Tensor] = sum_words
    scale: Callable[[tf.Tensor], tf.Tensor] = unit

    def compose(self, words: WordBatch, training: bool = False) -> tf.Tensor:
        """Computes a vector for each distinct text, not yet scaled."""
        return self.read(*self.layers, words, training)


def columns(
    parts: Sequence[Part], words: WordBatch, training: bool = False
) -> tf.Tensor:
    """Computes all parts of the vectors of distinct texts, `(texts, width)`."""
    return scaled(parts, [part.compose(words, training) for part in parts])


def scaled(parts: Sequence[Part], vectors: Sequence[tf.Tensor]) -> tf.Tensor:
    """Scales the result of each part's `compose`, and concatenates them."""
    pairs = zip(parts, vectors, strict=True)
    return tf.concat([p.scale(y) * p.length for p, y in pairs], axis=-1)


def widths(parts: Sequence[Part]) -> dict[str, int]:
    """Returns column name -> number of columns, for all parts in order."""
    return {name: n for part in parts for name, n in part.widths.items()}
