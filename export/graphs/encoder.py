"""Graphs of encoders, which compute unit vectors of strings."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.data.teacher_folder import TeacherVectors
from keras_lstm_dssm.encoders.hybrid_encoder import HybridEncoder
from keras_lstm_dssm.encoders.text_encoder import WORDS
from keras_lstm_dssm.export.graphs.saved_module import EncodingModule
from keras_lstm_dssm.text.many_texts import encode_in_batches
from keras_lstm_dssm.training.word_fit import check_fitted

_ENCODE_BATCH = 2048


class GraphEncoder(Protocol):
    """Protocol of exportable encoders: `TextEncoder` and `HybridEncoder`."""

    @property
    def weights(self) -> list[Any]:
        """The variables of the encoder."""

    @property
    def resources(self) -> list[Any]:
        """Other stateful objects of the graph, such as vocabulary tables."""

    def sync_weights(self) -> None:
        """Applies the pending updates of lazily updated rows."""

    def unit_vectors(self, texts: tf.Tensor) -> tf.Tensor:
        """Encodes strings `[batch]` into unit vectors `[batch, d]`."""

    def unit_vector(self, text: tf.Tensor) -> tf.Tensor:
        """Encodes a batch of one short text, faster than `unit_vectors`."""

    def is_short(self, texts: tf.Tensor) -> tf.Tensor:
        """Returns whether a batch is one short text, as `unit_vector` needs."""


class EncoderModule(EncodingModule):
    """The exported module of a trained encoder.

    If `teacher` has a vector of a text, `encode_all` returns the teacher's
    vector. For all other texts, `encode_all` returns the encoder's vectors.
    """

    def __init__(
        self, encoder: GraphEncoder, teacher: TeacherVectors | None = None
    ) -> None:
        if teacher is not None:
            check_fitted(encoder, teacher)
        self._teacher = teacher
        encoder.sync_weights()
        super().__init__(encoder, encoder.resources)
        # Keeps methods of the encoder. If the encoder were an attribute,
        # TensorFlow would save the encoder, too.
        self._is_short = encoder.is_short
        self._unit_vector = encoder.unit_vector
        self._unit_vectors = encoder.unit_vectors

    def encode(self, text: tf.Tensor) -> tf.Tensor:
        """See `EncodingModule`."""
        with self._served.reading():
            vectors = tf.cond(
                self._is_short(text),
                lambda: self._unit_vector(text),
                lambda: self._unit_vectors(text),
            )
        return tf.cast(vectors, tf.float32)

    def _encode_distinct(
        self, texts: Sequence[str | bytes], progress: bool
    ) -> np.ndarray:
        def encode(texts: Sequence[str | bytes]) -> np.ndarray:
            return encode_in_batches(
                self.encode, texts, _ENCODE_BATCH, progress
            )

        if self._teacher is None:
            return encode(texts)
        return self._teacher.completed(texts, encode)


class HybridEncoderModule(EncoderModule):
    """The exported encoder of a hybrid retriever: towers and word vectors."""

    def __init__(
        self, encoder: HybridEncoder, teacher: TeacherVectors | None = None
    ) -> None:
        super().__init__(encoder)
        self.weighted = encoder.weighted
        self._words_teacher = teacher if WORDS in encoder.parts else None
        hashing = encoder.hashing
        # The retriever's signature `explained` reads these two attributes.
        self.words_rule = hashing and (hashing.split, hashing.max_words)
        self.word_rows = encoder.word_rows

    def _encode_distinct(
        self, texts: Sequence[Any], progress: bool
    ) -> np.ndarray:
        vectors = super()._encode_distinct(texts, progress)
        if self._words_teacher is not None:
            # A teacher's vector replaces the sum of word vectors, which is in
            # the last columns.
            rows = self._words_teacher.rows(texts)
            known_vectors = self._words_teacher.vectors[rows[rows >= 0]]
            width = known_vectors.shape[1]
            vectors[rows >= 0, -width:] = (
                self.weighted.scales[-1] * known_vectors
            )
        return vectors
