"""What a ranker reads of trained models: cosines and scores of pairs."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.models import PairScorer, TwoTower

Encode = Callable[[Sequence[Any]], np.ndarray]
"""Function from n texts to unit vectors, float `[n, d]`."""


class FeatureSource(ABC):
    """Base of the systems whose score of a pair is a feature of a ranker."""

    @abstractmethod
    def score_pairs(
        self,
        queries: Sequence[bytes],
        documents: Sequence[bytes],
        progress: bool = False,
    ) -> np.ndarray:
        """Scores pairs.

        Args:
            queries: n texts.
            documents: n texts.
            progress: Whether to show a progress bar. Default `False`.

        Returns:
            float `[n]`.
        """


class OutsideCosine(FeatureSource):
    """The cosine of an encoder that this package did not train.

    Args:
        encode: Function from n texts to unit vectors, float `[n, d]`.
    """

    def __init__(self, encode: Encode) -> None:
        self._encode = encode

    def score_pairs(
        self,
        queries: Sequence[bytes],
        documents: Sequence[bytes],
        progress: bool = False,
    ) -> np.ndarray:
        """Scores pairs; see `FeatureSource.score_pairs`."""
        return _cosines(self._encode, self._encode, queries, documents)


class TowerCosine(FeatureSource):
    """The cosine of the vectors of two towers.

    Args:
        model: The trained towers.

    Attributes:
        model: The trained towers.
    """

    def __init__(self, model: TwoTower) -> None:
        self.model = model

    def score_pairs(
        self,
        queries: Sequence[bytes],
        documents: Sequence[bytes],
        progress: bool = False,
    ) -> np.ndarray:
        """Scores pairs; see `FeatureSource.score_pairs`."""
        query_encoder = self.model.query_encoder
        document_encoder = self.model.document_encoder
        return _cosines(
            lambda texts: query_encoder.encode(texts, progress=progress),
            lambda texts: document_encoder.encode(texts, progress=progress),
            queries,
            documents,
        )


class MatcherScore(FeatureSource):
    """The score of a pair scorer.

    Args:
        model: The trained pair scorer.

    Attributes:
        model: The trained pair scorer.
    """

    def __init__(self, model: PairScorer) -> None:
        self.model = model

    def score_pairs(
        self,
        queries: Sequence[bytes],
        documents: Sequence[bytes],
        progress: bool = False,
    ) -> np.ndarray:
        """Scores pairs; see `FeatureSource.score_pairs`."""
        return self.model.score_pairs(queries, documents, progress=progress)


def source_of(model: Any, name: str) -> TowerCosine | MatcherScore:
    """Returns the source of features that a trained model is.

    Args:
        model: A `TwoTower` or a `PairScorer`.
        name: What a message calls it.

    Raises:
        InputError: It is another model, or it is not trained.

    Example:
    >>> source_of(dssm.load_run("TOWERS"), "TOWERS").score_pairs(["a"], ["a b"])
    array([0.71], dtype=float32)
    """
    if isinstance(model, TwoTower) and not model.needs_adapt:
        return TowerCosine(model)
    if isinstance(model, PairScorer) and not model.matcher.needs_pretraining:
        return MatcherScore(model)
    raise InputError(
        f"{name}: found a {type(model).__name__}, expected trained features:"
        " the run of two towers or of a pair scorer"
    )


def _cosines(
    encode_queries: Encode,
    encode_documents: Encode,
    queries: Sequence[bytes],
    documents: Sequence[bytes],
) -> np.ndarray:
    """Encodes each distinct text once, and compares the vectors of pairs."""
    if not len(queries):
        return np.zeros(0, np.float32)
    sides = []
    for encode, texts in (
        (encode_queries, queries),
        (encode_documents, documents),
    ):
        rows = {text: row for row, text in enumerate(dict.fromkeys(texts))}
        vectors = encode(list(rows))
        sides.append(vectors[[rows[text] for text in texts]])
    return np.einsum("nd,nd->n", *sides)


def graph_scores(
    source: TowerCosine | MatcherScore, queries: tf.Tensor, titles: tf.Tensor
) -> tf.Tensor:
    """Scores pairs in a graph, float `[pairs]`.

    Args:
        source: A source whose model is a Keras model.
        queries: Strings `[pairs]`.
        titles: Strings `[pairs]`.
    """
    model = source.model
    if isinstance(model, PairScorer):
        return model.call((queries, titles), training=False)
    return tf.reduce_sum(
        model.query_encoder.unit_vectors(queries)
        * model.document_encoder.unit_vectors(titles),
        axis=1,
    )
