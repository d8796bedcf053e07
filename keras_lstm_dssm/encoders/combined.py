"""CombinedEncoder: the LSTM's vector, a sum of words and a sketch of them."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from keras_lstm_dssm.encoders.lstm import LSTMEncoder
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.layers import WordSketch, gather_sum, unit
from keras_lstm_dssm.registry import register
from keras_lstm_dssm.text import WordBatch, as_strings


@register
class CombinedEncoder(LSTMEncoder):
    """Three views of a text side by side, so that a cosine adds up three.

        y = [ sqrt(a) unit(LSTM),  sqrt(b) unit(sum of W l(t)),
              sqrt(c) unit(sketch) ],    a + b + c = 1

    The cosine of two such vectors is a, b and c times the cosines of their
    parts. The first is the paper's network, which knows order; the second a
    trained sum of the words' trigrams, which learns fast from few clicks;
    the third, not trained, is of the words themselves (`WordSketch`): it
    finds the part number that no click has taught. The shares are fixed:
    trained, they go where the training clicks are learnt by heart.

    Not of the paper; see docs/results/best.md for what each part gives.

    Args:
        cells: Width of the LSTM's part.
        bag: Width of the sum's part.
        sketch: Width of the sketch's part.
        shares: a, b and c, up to a common factor.
        split: See `LetterTrigrams`.
        **kwargs: See `LSTMEncoder`.

    Example:
    >>> encoder = CombinedEncoder(cells=32, bag=32, sketch=64)
    >>> encoder.adapt(["steel hex bolt", "wood glue"])
    >>> encoder.encode(["hex bolts"]).shape
    (1, 128)
    """

    def __init__(
        self,
        cells: int = 96,
        bag: int = 96,
        sketch: int = 512,
        shares: Sequence[float] = (1.0, 1.0, 1.0),
        split: str = "alphanumeric",
        **kwargs: Any,
    ) -> None:
        super().__init__(cells, split=split, **kwargs)
        if len(shares) != 3 or min(shares) <= 0:
            raise InputError(
                f"shares must be three positive numbers, not {shares}"
            )
        self.bag = bag
        self.sketch = sketch
        self.shares = [float(share) for share in shares]
        self.dimension = cells + bag + sketch
        self.bag_embedding = self._embedding(bag, "bag_embedding")
        self.word_sketch = WordSketch(
            sketch,
            dtype=self.dtype_policy,
            name="word_sketch",
        )

    def adapt(
        self, texts: Sequence[str | bytes], batch_size: int = 2048
    ) -> None:
        """Learns from titles how rare words are; before training.

        Args:
            texts: The titles, each of them once.
            batch_size: Titles hashed at once.
        """
        strings = as_strings(texts)
        self.word_sketch.adapt(
            self.trigrams.distinct(strings[start : start + batch_size])
            for start in range(0, len(strings), batch_size)
        )

    def compose(self, words: WordBatch, training: bool = False) -> tf.Tensor:
        """Reads the words in their order, and adds them up in two ways."""
        place, text = words.flat()
        bag = self.bag_embedding(words, training=training)
        parts = (
            super().compose(words, training),
            gather_sum(bag, place, text, training=training),
            gather_sum(self.word_sketch(words), place, text, training=False),
        )
        total = sum(self.shares)
        return tf.concat(
            [
                unit(part) * (share / total) ** 0.5
                for part, share in zip(parts, self.shares, strict=True)
            ],
            axis=-1,
        )

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "bag": self.bag,
            "sketch": self.sketch,
            "shares": self.shares,
        }
