"""The smallest pair scorer: the dot product of two means of word vectors."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.layers import TrigramVectors, WordSequences
from keras_lstm_dssm.losses import PairwiseHinge
from keras_lstm_dssm.matchers import Matcher
from keras_lstm_dssm.models.pair_scorer import PairScorer
from keras_lstm_dssm.optimizers.adagrad import Adagrad
from tests import reference

register = keras.saving.register_keras_serializable("tests")


def hashed_words(dimension: int = 4) -> TrigramVectors:
    """A word's vector is the sum of the rows of its trigrams."""
    return TrigramVectors(dimension, split="space")


@register
class MeanDot(Matcher):
    """s = scale (mean of the query's vectors) . (mean of the document's)."""

    def __init__(self, word_dimension: int = 4, **kwargs: Any) -> None:
        super().__init__(word_dimension, **kwargs)
        self.scale = self.add_weight(shape=(), initializer="ones", name="scale")
        self.represented: list[tuple[str, Any]] = []

    def represent(
        self, texts: WordSequences, side: str, training: bool = False
    ) -> tf.Tensor:
        if tf.executing_eagerly():
            self.represented.append((side, len(texts.lengths)))
        total = tf.reduce_sum(texts.vectors, axis=1)
        return total / tf.cast(texts.lengths, total.dtype)[:, tf.newaxis]

    def match(
        self, query: tf.Tensor, document: tf.Tensor, training: bool = False
    ) -> tf.Tensor:
        return self.scale * tf.reduce_sum(query * document, axis=-1)


def small_scorer(seed: int = 0) -> PairScorer:
    """A scorer whose weights are always the same."""
    keras.utils.set_random_seed(seed)
    return PairScorer(hashed_words(), MeanDot())


QUERIES = ["hex bolt", "wood glue", "drill", "hex bolt"]
POSITIVES = ["steel hex bolt 3 in", "glue", "drill kit for wood", "bolt"]
NEGATIVES = ["glue", "steel hex bolt 3 in", "lamp", "glue"]
TRIPLES = (QUERIES, POSITIVES, NEGATIVES)


def compiled(margin: float = 1.0, **options: Any) -> PairScorer:
    """The same scorer, compiled."""
    scorer = small_scorer()
    scorer.compile(Adagrad(0.03), PairwiseHinge(margin), **options)
    return scorer


def mean_vector(scorer: PairScorer, text: str) -> np.ndarray:
    """The mean of a text's word vectors, by NumPy."""
    table = np.asarray(scorer.words.embedding.table)
    rows = [
        sum(table[code] for code in reference.trigrams(word))
        for word in reference.split(text)
    ]
    return np.mean(rows, axis=0)


def pair_score(scorer: PairScorer, query: str, document: str) -> float:
    """The score of a pair, by NumPy."""
    scale = float(scorer.matcher.scale)
    return scale * float(
        mean_vector(scorer, query) @ mean_vector(scorer, document)
    )
