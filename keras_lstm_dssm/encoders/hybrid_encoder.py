"""`HybridEncoder` concatenates a tower's vector and a sum of word vectors."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.encoders.text_encoder import (
    TOWERS,
    WORDS,
    TextEncoder,
    columns,
    widths,
)
from keras_lstm_dssm.layers.letter_trigrams import LetterTrigrams
from keras_lstm_dssm.ops import unit
from keras_lstm_dssm.text.many_texts import encode_in_batches
from keras_lstm_dssm.text.word_hashing import WordBatch
from lstm_dssm_client.weighted_parts import Part, WeightedParts


class HybridPart(NamedTuple):
    """The encoder and the layers that compute some columns of the vectors."""

    encoder: TextEncoder
    layers: list[Any]  # the layers of `encoder` that compute the columns


class HybridEncoder:
    """Encodes texts into weighted, concatenated vectors of towers and words.

    An encoder's vector may have columns that were trained on clicks, and
    columns that were fitted to a teacher. The part `"towers"` has the trained
    columns. The part `"words"` has the fitted columns. The parts may be of
    different encoders.

    Example:
    >>> encoder = HybridEncoder({"towers": dssm.LSTMEncoder(8)}, {"towers": 1})
    >>> encoder.encode(["hex bolt"]).shape
    (1, 8)
    """

    def __init__(
        self, encoders: Mapping[str, TextEncoder], weights: Mapping[str, float]
    ) -> None:
        self.weighted = WeightedParts(
            _weighted_part(kind, encoders[kind], weights.get(kind, 0.0))
            for kind in (TOWERS, WORDS)
            if kind in encoders
        )
        self.parts: dict[str, HybridPart] = {
            part.name: part.source for part in self.weighted.vectors
        }
        holder = keras.layers.Layer()
        holder.parts = [
            layer for part in self.parts.values() for layer in part.layers
        ]
        self.encoders = [holder]
        self.weights: list[Any] = holder.weights
        self._graph: Any = None

    @property
    def resources(self) -> list[Any]:
        """Objects that a SavedModel needs in addition to variables."""
        encoders = [part.encoder for part in self.parts.values()]
        return [item for encoder in encoders for item in encoder.resources]

    @property
    def extra_state(self) -> list[np.ndarray]:
        """Arrays, other than weights, on which the vectors depend."""
        scales = [np.array(self.weighted.scales, np.float32)]
        encoders = [part.encoder for part in self.parts.values()]
        return sum((encoder.extra_state for encoder in encoders), scales)

    def sync_weights(self) -> None:
        """Brings lazily updated weights up to date."""
        for part in self.parts.values():
            part.encoder.sync_weights()

    def encode(
        self,
        texts: Sequence[str | bytes],
        batch_size: int = 2048,
        progress: bool = False,
    ) -> np.ndarray:
        """Encodes any number of texts into unit vectors, float32 `[n, d]`."""
        self.sync_weights()
        return encode_in_batches(self.unit_vectors, texts, batch_size, progress)

    def unit_vectors(self, texts: tf.Tensor) -> tf.Tensor:
        """Encodes strings `(batch,)` into vectors, float32 `(batch, d)`."""
        if not tf.executing_eagerly():
            return self._encode(lambda hashing: hashing.distinct(texts))
        if self._graph is None:
            self._graph = tf.function(
                self.unit_vectors, autograph=False
            ).get_concrete_function(tf.TensorSpec([None], tf.string, "texts"))
        return self._graph(texts)

    def unit_vector(self, text: tf.Tensor) -> tf.Tensor:
        """Encodes one short text as `unit_vectors` does, but faster."""
        return self._encode(lambda hashing: hashing.single(text))

    def is_short(self, texts: tf.Tensor) -> tf.Tensor:
        """Returns whether a batch is one short text, as `unit_vector` needs."""
        parts = self.parts.values()
        return tf.reduce_all([part.encoder.is_short(texts) for part in parts])

    @property
    def hashing(self) -> LetterTrigrams | None:
        """The hashing layer of the `"words"` part; `None` without this part."""
        part = self.parts.get(WORDS)
        return None if part is None else part.encoder.trigrams

    def word_rows(self, words: tf.Tensor) -> tf.Tensor:
        """Looks up the fitted vectors of words, float32 `(n, units)`."""
        part = self.weighted.vectors[-1]
        batch = part.source.encoder.trigrams.distinct(words)
        rows = tf.gather(part.encode(batch), batch.text_index)
        return tf.cast(rows, tf.float32)

    def _encode(
        self, hash_texts: Callable[[LetterTrigrams], WordBatch]
    ) -> tf.Tensor:
        batches: dict[tuple[Any, ...], WordBatch] = {}
        vectors = []
        for part in self.weighted.vectors:
            hashing = part.source.encoder.trigrams
            if hashing.rules not in batches:
                batches[hashing.rules] = hash_texts(hashing)
            words = batches[hashing.rules]
            rows = tf.gather(unit(part.encode(words)), words.text_index)
            vectors.append(tf.cast(rows, tf.float32))
        return tf.concat(self.weighted.scaled(vectors), axis=1)


def _weighted_part(kind: str, encoder: TextEncoder, weight: float) -> Part:
    parts = [part for part in encoder.vector_parts if part.kind == kind]
    layers = [layer for part in parts for layer in part.layers]
    # `HybridEncoder._encode` scales the result of `compose` to length 1. So a
    # single vector part needs no other scale. `columns` scales several vector
    # parts relative to each other, and concatenates the parts.
    compose = parts[0].compose if len(parts) == 1 else partial(columns, parts)
    source = HybridPart(encoder, layers)
    return Part(kind, weight, compose, sum(widths(parts).values()), source)
