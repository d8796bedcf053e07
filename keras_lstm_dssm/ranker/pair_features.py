"""PairFeatures: all numbers that a ranker has of a query and a title."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from tqdm import tqdm

from keras_lstm_dssm.ranker.feature_sources import FeatureSource
from keras_lstm_dssm.ranker.overlap_features import (
    NAMES,
    OverlapFeatures,
    on_grid,
)
from lstm_dssm_client.texts import pairs_as_bytes


class PairFeatures:
    """Computes the overlap of the words of pairs, and scores of systems.

    All numbers are rounded to multiples of 2^-12: a cosine that is computed
    in another batch differs in its last bits, and the trees must not.

    Args:
        overlap: Computes how the words overlap.
        sources: Name -> system whose score of a pair is a feature.

    Attributes:
        overlap: The argument.
        sources: The argument.
        names: The names of the features, in their order.

    Example:
    >>> overlap = OverlapFeatures.from_titles(["steel hex bolt", "wood glue"])
    >>> features = PairFeatures(overlap, {})
    >>> numbers = features(["hex bolts"], ["hex bolt 3"])
    >>> numbers.shape == (1, len(features.names))
    True
    """

    def __init__(
        self, overlap: OverlapFeatures, sources: Mapping[str, FeatureSource]
    ) -> None:
        self.overlap = overlap
        self.sources = dict(sources)
        self.names = (*NAMES, *self.sources)
        self._graph = tf.function(
            overlap,
            input_signature=[tf.TensorSpec([None], tf.string)] * 2,
            autograph=False,
        )

    def __call__(
        self,
        queries: Any,
        documents: Any,
        batch_size: int = 1024,
        progress: bool = False,
    ) -> np.ndarray:
        """Computes the features of pairs.

        Args:
            queries: Any iterable of texts.
            documents: As many titles.
            batch_size: Number of pairs whose words are compared at once.
            progress: Whether to show progress bars. Default `False`.

        Returns:
            float32 `[pairs, features]`, in the order of `names`.

        Raises:
            InputError: The texts are not strings, or not as many documents
                as queries.
        """
        sides = pairs_as_bytes(queries, documents)

        starts = range(0, len(sides[0]), batch_size)
        bar = tqdm(starts, "compare words", disable=not progress)
        overlap = [
            self._graph(
                *(
                    tf.constant(side[start : start + batch_size])
                    for side in sides
                )
            ).numpy()
            for start in bar
        ]
        words = np.concatenate([np.zeros([0, len(NAMES)]), *overlap])
        scores = [
            on_grid(source.score_pairs(*sides, progress)).numpy()
            for source in self.sources.values()
        ]
        columns = [words, *(values[:, np.newaxis] for values in scores)]
        return np.concatenate(columns, axis=1, dtype=np.float32)
