"""TextEncoder: what all encoders share, from strings to hashed words."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.layers import LetterTrigrams, TrigramEmbedding, unit
from keras_lstm_dssm.private_api import accept_any_inputs
from keras_lstm_dssm.text import WordBatch, encode_in_batches


class TextEncoder(keras.Model):
    """Base of the encoders: hashes texts; a subclass composes their words.

    A subclass makes its embeddings with `_embedding` and gives
    `compose(words)`. Its weights exist as soon as it is constructed.

    Args:
        alphabet: See `LetterTrigrams`.
        oov_buckets: See `LetterTrigrams`.
        max_words: See `LetterTrigrams`.
        split: See `LetterTrigrams`.

    Call arguments:
        inputs: Strings `(batch,)`, or the `WordBatch` made of them.

    Returns:
        `(batch, dimension)`, the sentence vectors y as the paper has them,
        not scaled to unit length (`encode` scales).
    """

    dimension: int
    """Width of the vectors."""

    def __init__(
        self,
        *,
        alphabet: str = "ascii",
        oov_buckets: int = 0,
        max_words: int | None = 128,
        split: str = "space",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.trigrams = LetterTrigrams(
            alphabet, oov_buckets, max_words, split, name="trigrams"
        )
        accept_any_inputs(self)
        self._graph: tf.types.experimental.ConcreteFunction | None = None
        self._before_read: Callable[[], None] | None = None

    def compose(self, words: WordBatch, training: bool = False) -> tf.Tensor:
        """Composes each distinct text's words: `(texts, dimension)`."""
        raise NotImplementedError(f"{type(self).__name__}.compose")

    def call(self, inputs: Any, training: bool = False) -> tf.Tensor:
        """Encodes strings, or words hashed before."""
        if not training and tf.executing_eagerly():
            self.sync_weights()
        if not isinstance(inputs, WordBatch):
            inputs = self.trigrams.distinct(inputs)
        return tf.gather(self.compose(inputs, training), inputs.text_index)

    def encode(
        self,
        texts: Sequence[str | bytes],
        batch_size: int = 2048,
        progress: bool = False,
    ) -> np.ndarray:
        """Encodes any number of texts into unit vectors.

        Args:
            texts: List or array of strings; any bytes are allowed, and an
                empty text has a defined vector too.
            batch_size: Texts encoded at once.
            progress: Whether to show a progress bar.

        Returns:
            Array `[len(texts), dimension]` of the encoder's dtype, float32
            unless said otherwise, rows of length 1, in the order of `texts`.

        Raises:
            InputError: An element of `texts` is not a string.

        Example:
        >>> encoder.encode(["hotels in shanghai", ""]).shape
        (2, 96)
        """
        self.sync_weights()
        return encode_in_batches(
            self._encode_batch, texts, batch_size, progress
        )

    def unit_vectors(self, texts: tf.Tensor) -> tf.Tensor:
        """Encodes a string tensor `(batch,)` into unit vectors, as a graph.

        The graph is traced once, at the first call; it is what `encode` runs
        and what is exported.
        """
        if tf.executing_eagerly():
            self.sync_weights()
        return self._encode_batch(texts)

    def _encode_batch(self, texts: tf.Tensor) -> tf.Tensor:
        if self._graph is None:
            self._graph = tf.function(
                lambda text: unit(self(text))
            ).get_concrete_function(tf.TensorSpec([None], tf.string, "text"))
        return self._graph(texts)

    @property
    def needs_adapt(self) -> bool:
        """Whether `adapt` must be called before training; here `False`."""
        return False

    @property
    def embeddings(self) -> list[TrigramEmbedding]:
        """The layers whose tables an optimizer may update lazily."""
        return [
            layer
            for layer in self._flatten_layers(recursive=False)
            if isinstance(layer, TrigramEmbedding)
        ]

    @property
    def tables(self) -> list[keras.Variable]:
        """The trainable tables, each read once for a batch's trigrams."""
        return [layer.table for layer in self.embeddings if layer.trainable]

    @property
    def before_read(self) -> Callable[[], None] | None:
        """Function called before weights are read, or `None`, the default.

        It is called without arguments by `sync_weights`. An optimizer that
        updates rows lazily sets it to a function that brings all rows of the
        tables up to date. Setting it sets it for all `embeddings`, too.
        """
        return self._before_read

    @before_read.setter
    def before_read(self, function: Callable[[], None] | None) -> None:
        self._before_read = function
        for layer in self.embeddings:
            layer.before_read = function

    def sync_weights(self) -> None:
        """Brings lazily updated rows of the tables up to date.

        Called before weights are read for inference (`encode`,
        `unit_vectors`, a call in eager mode with `training=False`), by
        `get_weights`, `set_weights`, saving and loading.
        """
        if self._before_read is not None:
            self._before_read()

    def get_weights(self) -> list[np.ndarray]:
        """Returns all weights, up to date, see `keras.Model.get_weights`."""
        self.sync_weights()
        return super().get_weights()

    def set_weights(self, weights: list[np.ndarray]) -> None:
        """Replaces all weights, see `keras.Model.set_weights`."""
        self.sync_weights()  # a pending update would change the new rows
        super().set_weights(weights)

    def _embedding(self, units: int, name: str) -> TrigramEmbedding:
        return TrigramEmbedding(
            self.trigrams.size, units, dtype=self.dtype_policy, name=name
        )

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        hashing = self.trigrams
        return {
            "name": self.name,
            "dtype": self.dtype_policy.name,
            "alphabet": hashing.alphabet,
            "oov_buckets": hashing.oov_buckets,
            "max_words": hashing.max_words,
            "split": hashing.split,
        }
