"""A mixture of towers in a graph: one query and one document encoder."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.encoders import TextEncoder
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import Mixture
from keras_lstm_dssm.models import TwoTower


class MixtureEncoder:
    """Encodes texts by several encoders, into one unit vector, in a graph.

    The vector is `[sqrt(w_1) v_1, sqrt(w_2) v_2, ...]` with unit vectors v_i
    and weights w_i that sum to 1, so that the inner product of a query's and
    a document's vector is the weighted sum of the encoders' cosines.

    Args:
        encoders: Name -> encoder, float32 or float64.
        weights: Name -> weight, above 0; their sum is 1.

    Attributes:
        weights: The variables of all encoders.
        scales: Square roots of the parts' weights, in the same order.
    """

    def __init__(
        self, encoders: Mapping[str, TextEncoder], weights: Mapping[str, float]
    ) -> None:
        self._encoders = list(encoders.values())
        self.scales = [np.sqrt(weights[name]) for name in encoders]
        self.weights: list[Any] = [
            weight for encoder in self._encoders for weight in encoder.weights
        ]

    def sync_weights(self) -> None:
        """Brings the weights of all encoders up to date."""
        for encoder in self._encoders:
            encoder.sync_weights()

    def unit_vectors(self, texts: tf.Tensor) -> tf.Tensor:
        """Encodes strings `[batch]` into unit vectors, float32 `[batch, d]`."""
        return self._join(each.unit_vectors(texts) for each in self._encoders)

    def unit_vector(self, text: tf.Tensor) -> tf.Tensor:
        """Encodes a batch of one text that `is_short`, faster; `[1, d]`."""
        return self._join(each.unit_vector(text) for each in self._encoders)

    def is_short(self, texts: tf.Tensor) -> tf.Tensor:
        """Returns whether `unit_vector` takes a batch: one text, not long."""
        return tf.reduce_all([each.is_short(texts) for each in self._encoders])

    def _join(self, vectors: Iterable[tf.Tensor]) -> tf.Tensor:
        return tf.concat(
            [
                np.float32(scale) * tf.cast(part, tf.float32)
                for scale, part in zip(self.scales, vectors, strict=True)
            ],
            axis=1,
        )


class MixtureTowers(NamedTuple):
    """The encoders of a mixture of towers, as those of one `TwoTower`.

    Attributes:
        query_encoder: Encoder of queries.
        document_encoder: Encoder of documents.
    """

    query_encoder: MixtureEncoder
    document_encoder: MixtureEncoder


def mixture_towers(mixture: Mixture) -> MixtureTowers:
    """Returns the encoders of a mixture, for `export_retriever`.

    Args:
        mixture: A mixture whose parts of weight above 0 are `TwoTower`s.

    Raises:
        InputError: A part is something else.

    Example:
    >>> towers = mixture_towers(Mixture({"a": model, "b": other}, [0.6, 0.4]))
    >>> export_retriever(*towers, ids, titles, "models/retriever")
    """
    weights = {name: w for name, w in mixture.weights.items() if w}
    models = {name: mixture.parts[name] for name in weights}
    for name, model in models.items():
        if not isinstance(model, TwoTower):
            raise InputError(
                f"part {name!r} of the mixture is no TwoTower, and only the"
                " encoders of towers can be exported: leave it out, or search"
                " from Python, with Mixture.retrieve"
            )
    return MixtureTowers(
        MixtureEncoder(
            {name: model.query_encoder for name, model in models.items()},
            weights,
        ),
        MixtureEncoder(
            {name: model.document_encoder for name, model in models.items()},
            weights,
        ),
    )
