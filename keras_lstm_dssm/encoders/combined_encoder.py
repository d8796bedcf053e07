"""CombinedEncoder: the LSTM's vector, a sum of words and a sketch of them."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.encoders.recurrent_encoders import LSTMEncoder
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.layers import WordSketch, gather_sum, unit
from keras_lstm_dssm.registration import register
from keras_lstm_dssm.text import WordBatch, as_strings

_LONG = 95  # percent of the titles that are not `long`


@register
class CombinedEncoder(LSTMEncoder):
    """Three views of a text side by side, so that a cosine adds up three.

        y = [ sqrt(a) unit(LSTM),  sqrt(b) unit(sum of W l(t)),
              sqrt(c) m unit(sketch),  sqrt(c) sqrt(1 - m^2) ],
        m = min(1, |sketch| / long) ^ (1 - p),    a + b + c = 1

    The cosine of two such vectors is a, b and c times the cosines of their
    parts. The first is the paper's network, which knows order; the second a
    trained sum of the words' trigrams, which learns fast from few clicks;
    the third, not trained, is of the words themselves (`WordSketch`): it
    finds the part number that no click has taught. The shares are fixed:
    trained, they go where the training clicks are learnt by heart.

    A cosine of bags of words has a long title's words count for less, in
    proportion to its length. In documents, p below 1 takes some of that
    back, as b does in BM25: the sketch of a title keeps a length below one,
    unless it is among the longest twentieth (`long` and above), and the
    number at the end, which is 0 in queries, fills it up.

    Not of the paper; see docs/results/best.md for what each part gives.

    Args:
        cells: Width of the LSTM's part.
        bag: Width of the sum's part.
        sketch: Width of the sketch's part, without the number at its end.
        shares: a, b and c, up to a common factor.
        length_norm: p, from 0 (the sum of what the common words weigh) to 1
            (a cosine). Below 1 it is for document encoders only.
        split: See `LetterTrigrams`.
        **kwargs: See `LSTMEncoder`.

    Example:
    >>> encoder = CombinedEncoder(cells=32, bag=32, sketch=63)
    >>> encoder.adapt(["steel hex bolt", "wood glue"])
    >>> encoder.encode(["hex bolts"]).shape
    (1, 128)
    """

    def __init__(
        self,
        cells: int = 96,
        bag: int = 96,
        sketch: int = 511,
        shares: Sequence[float] = (1.0, 1.0, 1.0),
        length_norm: float = 1.0,
        split: str = "alphanumeric",
        **kwargs: Any,
    ) -> None:
        super().__init__(cells, split=split, **kwargs)
        if len(shares) != 3 or min(shares) <= 0:
            raise InputError(
                f"shares must be three positive numbers, not {shares}"
            )
        if not 0 <= length_norm <= 1:
            raise InputError(
                f"length_norm must be from 0 to 1, not {length_norm}"
            )
        self.bag = bag
        self.sketch = sketch
        self.shares = [float(share) for share in shares]
        self.length_norm = length_norm
        self.dimension = cells + bag + sketch + 1
        self.bag_embedding = self._embedding(bag, "bag_embedding")
        self.word_sketch = WordSketch(
            sketch,
            dtype=self.dtype_policy,
            name="word_sketch",
        )
        self.long = self.add_weight(
            shape=(), initializer="ones", trainable=False, name="long"
        )

    @property
    def needs_adapt(self) -> bool:
        """Whether `adapt` must be called before training.

        `True` until `adapt` was called, or weights of an adapted encoder
        were loaded or set. Read from the weights themselves: those that
        `adapt` replaces all start at 1, a value that it never gives them.
        """
        if np.all(self.word_sketch.word_weight.numpy() == 1):
            return True
        return self.length_norm < 1 and float(self.long) == 1

    def adapt(
        self, texts: Sequence[str | bytes], batch_size: int = 2048
    ) -> None:
        """Learns from titles how rare words are, and what is long.

        To be called before training.

        Args:
            texts: The titles, each of them once.
            batch_size: Titles hashed at once.
        """
        strings = as_strings(texts)

        def batches() -> Iterator[WordBatch]:
            for start in range(0, len(strings), batch_size):
                yield self.trigrams.distinct(strings[start:][:batch_size])

        self.word_sketch.adapt(batches())
        if self.length_norm == 1:
            return
        lengths = [
            tf.norm(self._sketch(words, *words.flat()), axis=-1)
            for words in batches()
        ]
        self.long.assign(np.percentile(np.concatenate(lengths), _LONG))

    def compose(self, words: WordBatch, training: bool = False) -> tf.Tensor:
        """Reads the words in their order, and adds them up in two ways."""
        place, text = words.flat()
        bag = self.bag_embedding(words, training=training)
        sketch = self._sketch(words, place, text)
        length = tf.norm(sketch, axis=-1, keepdims=True)
        long = tf.cast(self.long.value, length.dtype)
        kept = tf.minimum(tf.math.divide_no_nan(length, long), 1)
        kept **= 1 - self.length_norm
        parts = (
            unit(super().compose(words, training)),
            unit(gather_sum(bag, place, text, training=training)),
            tf.concat([unit(sketch) * kept, tf.sqrt(1 - kept**2)], axis=-1),
        )
        total = sum(self.shares)
        return tf.concat(
            [
                part * (share / total) ** 0.5
                for part, share in zip(parts, self.shares, strict=True)
            ],
            axis=-1,
        )

    def _sketch(
        self, words: WordBatch, place: tf.Tensor, text: tf.Tensor
    ) -> tf.Tensor:
        """The sum of the words' sketches, of each distinct text."""
        return gather_sum(self.word_sketch(words), place, text, training=False)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "bag": self.bag,
            "sketch": self.sketch,
            "shares": self.shares,
            "length_norm": self.length_norm,
        }
