"""Ranker: boosted trees over the features of pairs."""

from typing import Any

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.dense_system import DenseSystem
from keras_lstm_dssm.ranker.boosted_trees import BoostedTrees
from keras_lstm_dssm.ranker.feature_sources import TowerCosine
from keras_lstm_dssm.ranker.pair_features import PairFeatures
from keras_lstm_dssm.text import as_bytes
from lstm_dssm_client.texts import query_as_bytes

CANDIDATES = 100
"""Number of documents that the first stage finds for a ranker."""

_ROWS_AT_ONCE = 4096


class Ranker:
    """Scores pairs of a query and a title by boosted trees.

    The score is the sum of the trees' leaves and of weighted features. Like a
    `PairScorer`, a ranker orders the candidates that another system has
    found; `train_ranker` trains one.

    Args:
        features: Computes the features.
        trees: The trees, with as many features.
        weights: float `[features]`, what each feature is multiplied with and
            added to the score. Default `None`: zeros.

    Attributes:
        features: The argument.
        trees: The argument.
        weights: float32 `[features]`.
        candidates: Number of documents that the first stage finds.

    Raises:
        InputError: Trees or weights have another number of features.

    Example:
    >>> ranker = dssm.load_run("RANKER")
    >>> ranker.score("angle bracket", ["12-Gauge Angle", "Wood glue"])
    array([ 0.9, -1.3], dtype=float32)
    """

    def __init__(
        self,
        features: PairFeatures,
        trees: BoostedTrees,
        weights: np.ndarray | None = None,
    ) -> None:
        count = len(features.names)
        if weights is None:
            weights = np.zeros(count)
        if trees.features != count or np.shape(weights) != (count,):
            raise InputError(
                f"found trees of {trees.features} features and weights of"
                f" shape {list(np.shape(weights))}, expected {count}:"
                f" {', '.join(features.names)}"
            )
        self.features = features
        self.candidates = CANDIDATES
        self.trees = trees
        self.weights = np.asarray(weights, np.float32)
        self._graph = tf.function(
            self.score_features,
            input_signature=[tf.TensorSpec([None, count], tf.float32)],
            autograph=False,
        )

    def score_features(self, features: tf.Tensor) -> tf.Tensor:
        """Scores rows of features, in a graph or eagerly.

        Args:
            features: float32 `[pairs, features]`.

        Returns:
            float32 `[pairs]`.
        """
        weighted = tf.cast(features * self.weights, tf.float64)
        return tf.cast(
            self.trees(features) + tf.reduce_sum(weighted, axis=1), tf.float32
        )

    def score(self, query: str, documents: Any) -> np.ndarray:
        """Returns the scores of any number of titles for one query.

        Args:
            query: The query's text.
            documents: Any iterable of titles.

        Returns:
            float32 `[titles]`, in their order.

        Raises:
            InputError: `query` is not one text, or `documents` no texts.
        """
        text, texts = query_as_bytes(query), as_bytes(documents)
        return self.score_pairs([text] * len(texts), texts)

    def score_pairs(
        self,
        queries: Any,
        documents: Any,
        batch_size: int = 1024,
        progress: bool = False,
    ) -> np.ndarray:
        """Scores many pairs.

        Args:
            queries: Any iterable of texts.
            documents: As many titles.
            batch_size: Number of pairs whose words are compared at once.
            progress: Whether to show progress bars. Default `False`.

        Returns:
            float32 `[pairs]`, in their order.

        Raises:
            InputError: The texts are not strings, or not as many documents
                as queries.
        """
        rows = self.features(queries, documents, batch_size, progress)
        scores = [
            self._graph(rows[start : start + _ROWS_AT_ONCE]).numpy()
            for start in range(0, len(rows), _ROWS_AT_ONCE)
        ]
        return np.concatenate([np.zeros(0, np.float32), *scores])

    @property
    def towers(self) -> TowerCosine | None:
        """The first two towers among the sources, `None` without any."""
        for source in self.features.sources.values():
            if isinstance(source, TowerCosine):
                return source
        return None

    def first_stage(self, **options: Any) -> DenseSystem | None:
        """Returns the system that finds the candidates where it is served.

        Args:
            **options: Options of `TextEncoder.encode`.

        Returns:
            Retrieval by the cosine of `towers`, `None` without any.
        """
        if self.towers is None:
            return None
        model = self.towers.model
        return DenseSystem(
            lambda texts: model.query_encoder.encode(texts, **options),
            lambda texts: model.document_encoder.encode(texts, **options),
        )
