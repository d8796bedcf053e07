"""The smallest pair scorer: the dot product of two means of word vectors."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.layers import TrigramEmbedding, WordSequences, WordVectors
from keras_lstm_dssm.losses import PairwiseHinge
from keras_lstm_dssm.matchers import Matcher
from keras_lstm_dssm.models.pair_scorer import PairScorer
from keras_lstm_dssm.optimizers.adagrad import Adagrad
from keras_lstm_dssm.private_api import accept_any_inputs
from keras_lstm_dssm.text import WordBatch
from keras_lstm_dssm.text.word_batch import distinct_words
from keras_lstm_dssm.text.word_hashing import TRIGRAMS
from tests import reference

register = keras.saving.register_keras_serializable("tests")


@register
class HashedWords(WordVectors):
    """A word's vector is the sum of the rows of its trigrams."""

    def __init__(self, dimension: int = 4, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.dimension = dimension
        self.embedding = TrigramEmbedding(TRIGRAMS, dimension)
        accept_any_inputs(self)
        self.built = True

    def distinct(self, texts: tf.Tensor) -> WordBatch:
        return distinct_words(texts)

    def call(self, words: WordBatch, training: bool = False) -> WordSequences:
        vectors = tf.gather(
            self.embedding(words, training=training), words.words
        )
        mask = tf.sequence_mask(words.lengths, tf.shape(words.words)[1])
        vectors *= tf.cast(mask, vectors.dtype)[:, :, tf.newaxis]
        return WordSequences(vectors, words.lengths, words.words)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "dimension": self.dimension}


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
    return PairScorer(HashedWords(), MeanDot())


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
