"""PairScoring: pairs of texts -> scores, in batches of similar length."""

from typing import Any

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.layers import WordVectors
from keras_lstm_dssm.layers.flat_packing import RowSequences
from keras_lstm_dssm.matchers import Matcher
from keras_lstm_dssm.matchers.matcher import rows_of
from keras_lstm_dssm.text import WordBatch, as_bytes
from keras_lstm_dssm.text.text_pairs import score_in_batches
from lstm_dssm_client.texts import pairs_as_bytes, query_as_bytes


class PairScoring:
    """Scores pairs by the words and the matcher of a `PairScorer`.

    Args:
        words: Layer that turns texts into word vectors.
        matcher: Layer that scores two sequences of word vectors.
    """

    def __init__(self, words: WordVectors, matcher: Matcher) -> None:
        self.words = words
        self.matcher = matcher
        # Texts of a new length are not a reason to trace anew.
        self._represent_query = tf.function(
            lambda texts: matcher.represent(
                self._texts(words.distinct(texts)), "query"
            ),
            reduce_retracing=True,
        )
        self._score_documents = tf.function(
            self._documents_of_query, reduce_retracing=True
        )
        self._score_pairs = tf.function(
            lambda queries, documents: self.of_batches(
                words.distinct(queries), words.distinct(documents)
            ),
            reduce_retracing=True,
        )

    def of_batches(
        self, query: WordBatch, document: WordBatch, training: bool = False
    ) -> tf.Tensor:
        """Returns the scores of a hashed batch of pairs, `(pairs,)`.

        Args:
            query: The queries; its `text_index` is `[pairs]`.
            document: The documents; its `text_index` is `[pairs]`.
            training: Whether a gradient will be computed. Default `False`.
        """
        return self.matcher.score_rows(
            self._texts(query, training),
            self._texts(document, training),
            query.text_index,
            document.text_index,
            training,
        )

    def of_query(
        self, query: str, documents: Any, batch_size: int
    ) -> np.ndarray:
        """Returns the scores of documents; see `PairScorer.score`."""
        text = query_as_bytes(query)
        texts = as_bytes(documents)
        represented = self._represent_query(tf.constant([text]))

        def score(rows: np.ndarray) -> np.ndarray:
            batch = tf.constant([texts[row] for row in rows], tf.string)
            return self._score_documents(represented, batch).numpy()

        return score_in_batches(
            score, [len(text) for text in texts], batch_size
        )

    def of_pairs(
        self,
        queries: Any,
        documents: Any,
        batch_size: int,
        progress: bool = False,
    ) -> np.ndarray:
        """Returns the scores of pairs; see `PairScorer.score_pairs`."""
        sides = pairs_as_bytes(queries, documents)

        def score(rows: np.ndarray) -> np.ndarray:
            batch = [
                tf.constant([side[row] for row in rows], tf.string)
                for side in sides
            ]
            return self._score_pairs(*batch).numpy()

        lengths = [len(text) for text in sides[1]]
        return score_in_batches(score, lengths, batch_size, progress)

    def _texts(self, words: WordBatch, training: bool = False) -> Any:
        """Returns the word vectors of the distinct texts of a batch."""
        if not self.matcher.reads_rows:
            return self.words(words, training=training)
        table = self.words.embedding(words, training=training)
        return RowSequences(table, words.flat()[0], words.lengths)

    def _documents_of_query(self, query: Any, texts: tf.Tensor) -> tf.Tensor:
        words = self.words.distinct(texts)
        document = self.matcher.represent(self._texts(words), "document")
        return self.matcher.match(
            rows_of(query, tf.zeros_like(words.text_index)),
            rows_of(document, words.text_index),
        )
