"""Graphs of encoders, and of mixtures of them: strings to unit vectors."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.distillation import TeacherVectors
from keras_lstm_dssm.distillation.word_fit import check_fitted
from keras_lstm_dssm.encoders import TextEncoder
from keras_lstm_dssm.encoders.hybrid_encoder import HybridEncoder
from keras_lstm_dssm.encoders.parts import WORDS
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import Mixture
from keras_lstm_dssm.export.graphs.saved_module import EncodingModule
from keras_lstm_dssm.models.kinds import kind_name
from keras_lstm_dssm.text.strings import encode_in_batches

_ENCODE_BATCH = 2048


class GraphEncoder(Protocol):
    """Protocol of encoders that can be exported.

    `TextEncoder` and `MixtureEncoder` have it.
    """

    @property
    def weights(self) -> list[Any]:
        """The variables."""

    @property
    def resources(self) -> list[Any]:
        """Other objects of the graph, such as tables of vocabularies."""

    def sync_weights(self) -> None:
        """Brings lazily updated rows up to date."""

    def unit_vectors(self, texts: tf.Tensor) -> tf.Tensor:
        """Encodes strings `[batch]` into unit vectors `[batch, d]`."""

    def unit_vector(self, text: tf.Tensor) -> tf.Tensor:
        """Encodes a batch of one text that `is_short`, faster; `[1, d]`."""

    def is_short(self, texts: tf.Tensor) -> tf.Tensor:
        """Returns whether `unit_vector` takes a batch: one text, not long."""


class EncoderModule(EncodingModule):
    """A trained encoder, float32 or float64, or the encoders of a mixture.

    The Keras model itself is not exported, because Keras would trace a
    float32 signature for its string input. With a teacher, `encode_all` returns
    its own vectors for the texts that it knows.
    """

    def __init__(
        self, encoder: GraphEncoder, teacher: TeacherVectors | None = None
    ) -> None:
        if teacher is not None:
            check_fitted(encoder, teacher)
        self._teacher = teacher
        encoder.sync_weights()
        super().__init__(encoder, encoder.resources)
        # Methods: Keras would be saved with the encoder itself.
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

    def encode_all(
        self, texts: Sequence[str | bytes], progress: bool = False
    ) -> np.ndarray:
        """See `EncodingModule`."""

        def encode(texts: Sequence[str | bytes]) -> np.ndarray:
            return encode_in_batches(
                self.encode, texts, _ENCODE_BATCH, progress
            )

        if self._teacher is None:
            return encode(texts)
        return self._teacher.completed(texts, encode)


class HybridEncoderModule(EncoderModule):
    """The encoders of a hybrid's parts with vectors.

    With a teacher, the words part of a title that it knows is its own vector.
    `word_rows`, for the signature `explained`, is saved with the module.
    """

    def __init__(
        self, encoder: HybridEncoder, teacher: TeacherVectors | None = None
    ) -> None:
        super().__init__(encoder)
        self._known = teacher if WORDS in encoder.widths else None
        self._words_scale = np.float32(encoder.scales[-1])
        if WORDS in encoder.widths:
            self.word_rows = tf.function(
                encoder.word_rows,
                [tf.TensorSpec([None], tf.string)],
                autograph=False,
            )

    def encode_all(
        self, texts: Sequence[Any], progress: bool = False
    ) -> np.ndarray:
        """See `EncodingModule`."""
        vectors = super().encode_all(texts, progress)
        if self._known is not None:
            rows = self._known.rows(texts)
            known = self._known.vectors[rows[rows >= 0]]
            width = known.shape[1]
            vectors[rows >= 0, -width:] = self._words_scale * known
        return vectors


class MixtureEncoder:
    """Encodes texts by several encoders, into one unit vector, in a graph.

    It is `[sqrt(w_1) v_1, sqrt(w_2) v_2, ...]` with unit vectors v_i and
    weights w_i that sum to 1: inner products are weighted sums of cosines.
    """

    def __init__(
        self, encoders: Mapping[str, TextEncoder], weights: Mapping[str, float]
    ) -> None:
        self.encoders = list(encoders.values())
        self.scales = [np.sqrt(weights[name]) for name in encoders]
        self.weights: list[Any] = [
            weight for encoder in self.encoders for weight in encoder.weights
        ]
        self.resources: list[Any] = [
            each for encoder in self.encoders for each in encoder.resources
        ]

    def sync_weights(self) -> None:
        """See `GraphEncoder`."""
        for encoder in self.encoders:
            encoder.sync_weights()

    def unit_vectors(self, texts: tf.Tensor) -> tf.Tensor:
        """See `GraphEncoder`."""
        return self._join(each.unit_vectors(texts) for each in self.encoders)

    def unit_vector(self, text: tf.Tensor) -> tf.Tensor:
        """See `GraphEncoder`."""
        return self._join(each.unit_vector(text) for each in self.encoders)

    def is_short(self, texts: tf.Tensor) -> tf.Tensor:
        """See `GraphEncoder`."""
        return tf.reduce_all([each.is_short(texts) for each in self.encoders])

    def _join(self, vectors: Iterable[tf.Tensor]) -> tf.Tensor:
        return tf.concat(
            [
                np.float32(scale) * tf.cast(part, tf.float32)
                for scale, part in zip(self.scales, vectors, strict=True)
            ],
            axis=1,
        )


class MixtureTowers(NamedTuple):
    """The encoders of a mixture of towers, named as those of a `TwoTower`."""

    query_encoder: MixtureEncoder  # encoder of queries
    document_encoder: MixtureEncoder  # encoder of documents


def mixture_towers(mixture: Mixture) -> MixtureTowers:
    """Returns the encoders of a mixture whose parts are `TwoTower`s."""
    weights = {name: w for name, w in mixture.weights.items() if w}
    models = {name: mixture.parts[name] for name in weights}
    for name, model in models.items():
        if kind_name(model) != "towers":
            raise InputError(
                f"part {name!r} of the mixture is no TwoTower, and only the"
                " encoders of towers can be exported: leave it out, or search"
                " from Python, with Mixture.retrieve"
            )
    return MixtureTowers(
        *(
            MixtureEncoder(
                {name: getattr(model, side) for name, model in models.items()},
                weights,
            )
            for side in MixtureTowers._fields
        )
    )
