"""The base class of matchers, which score pairs of texts."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.errors import InputError, check_at_least, check_precision
from keras_lstm_dssm.layers.bidirectional_recurrence import FlatSequences
from keras_lstm_dssm.layers.word_vectors import WordSequences, WordVectors
from keras_lstm_dssm.private_api import accept_any_inputs
from keras_lstm_dssm.registration import Configured

SIDES = ("query", "document")

Texts = WordSequences | FlatSequences


class Matcher(Configured, keras.layers.Layer):
    """Base of the matchers, which score two sequences of word vectors.

    A subclass implements `represent`, for computations on a single text, and
    `match`, for computations on a pair. `PairScorer` represents each distinct
    text of a batch once. The constructor creates all weights.

    Args:
        word_dimension: Width of the word vectors. Default 50.
        **kwargs: Arguments of `keras.layers.Layer`. `dtype` is `"float32"`
            or `"float64"`.

    Call arguments:
        query: `WordSequences`, a query for each pair; `lengths` in any order.
        document: Like `query`: a document for each pair.
        training: Whether a gradient will be computed. Default `False`.

    Returns:
        Scores `(pairs,)`. Scores of different queries are not comparable.

    Raises:
        InputError: An argument is not supported.

    Example:
    >>> class MeanDot(Matcher):
    ...     def match(self, query, document, training=False):
    ...         query = tf.reduce_mean(query.vectors, 1)
    ...         document = tf.reduce_mean(document.vectors, 1)
    ...         return tf.reduce_sum(query * document, -1)
    >>> words = dssm.layers.TrigramVectors(dimension=4)
    >>> scorer = dssm.PairScorer(words, MeanDot(word_dimension=4))
    >>> scorer.score("bolt", ["hex bolt", "wood glue"]).shape
    (2,)
    """

    trains_words = True
    """Whether training changes the word vectors."""

    reads_flat = False
    """Whether `represent` also takes `FlatSequences`."""

    scores_by_numpy = False
    """Whether `represent_by_numpy` and `score_query` are implemented."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        by_graph_and_numpy = [
            ("match", "score_query"),
            ("represent", "represent_by_numpy"),
        ]
        for graph, by_numpy in by_graph_and_numpy:
            if graph in vars(cls) and by_numpy not in vars(cls):
                # The class has a new graph method, but inherits the NumPy
                # method, which would compute other scores.
                cls.scores_by_numpy = False

    def __init__(self, word_dimension: int = 50, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        check_precision(self)
        check_at_least(1, word_dimension=word_dimension)
        self.word_dimension = word_dimension
        accept_any_inputs(self)
        self.supports_jit = False

    def build(self, *shapes: Any) -> None:
        """Does nothing: the constructor has created all weights."""

    @property
    def multipliers(self) -> dict[str, float]:
        """Name of a sublayer -> factor of the learning rate; see `Adagrad`."""
        return {}

    @property
    def needs_pretraining(self) -> bool:
        """Whether `pretrain` must be called before scores have a meaning."""
        return False

    def check_pretrained(self) -> None:
        """Raises `InputError` if `pretrain` must be called first."""
        if self.needs_pretraining:
            raise InputError(
                f"{type(self).__name__} has not been pretrained: call "
                "scorer.matcher.pretrain(scorer.words, queries, documents) "
                "with the positive pairs before fit, or train with dssm.train"
            )

    def pretrain(
        self,
        words: WordVectors,
        queries: Sequence[str],
        documents: Sequence[str],
        seed: int = 0,
    ) -> None:
        """Prepares the matcher for training, with the texts of training pairs.

        The result is saved with the weights. The base class does nothing.

        Args:
            words: The layer that computes word vectors.
            queries: The queries of the positive training pairs.
            documents: The documents of these pairs, in the same order.
            seed: Seed of all random numbers. Default 0.
        """

    def represent(self, texts: Any, side: str, training: bool = False) -> Any:
        """Represents each text for `match`.

        Args:
            texts: The word vectors of distinct texts: `WordSequences`; or
                `FlatSequences` if `reads_flat` is true.
            side: `"query"` or `"document"`, for matchers with separate
                weights for queries and documents.
            training: Whether a gradient will be computed. Default `False`.

        Returns:
            A tensor or nested tuples of tensors, each with a row for each text.
            The base class returns `texts`.
        """
        return texts

    def match(
        self, query: Any, document: Any, training: bool = False
    ) -> tf.Tensor:
        """Scores pairs of represented texts.

        Args:
            query: Representations of the queries, a row for each pair.
            document: Representations of the documents, a row for each pair.
            training: Whether a gradient will be computed. Default `False`.

        Returns:
            Scores `(pairs,)`.
        """
        raise NotImplementedError(f"{type(self).__name__}.match")

    def represent_by_numpy(
        self, texts: FlatSequences, side: str
    ) -> Sequence[np.ndarray]:
        """Represents each text for `score_query`.

        The fields of `texts` are NumPy arrays; `texts.lengths` are descending.
        Returns an array `[rows, width]` for each text.
        """
        raise NotImplementedError(f"{type(self).__name__}.represent_by_numpy")

    def score_query(
        self, query: np.ndarray, documents: np.ndarray, lengths: np.ndarray
    ) -> np.ndarray:
        """Scores documents for one query as `match` does, but by NumPy.

        Args:
            query: The rows of the query, from `represent_by_numpy`.
            documents: The rows of all documents, one document after the other.
            lengths: The number of rows of each document, descending.

        Returns:
            Scores `[documents]`.
        """
        raise NotImplementedError(f"{type(self).__name__}.score_query")

    def score_rows(
        self,
        query: Texts,
        document: Texts,
        query_rows: tf.Tensor,
        document_rows: tf.Tensor,
        training: bool = False,
    ) -> tf.Tensor:
        """Scores pairs of texts; represents each distinct text once.

        The base class copies the representation of a text for each pair. A
        subclass can override this method to avoid the copies.

        Args:
            query: The distinct queries.
            document: The distinct documents.
            query_rows: int32 `(pairs,)`, the query of each pair.
            document_rows: int32 `(pairs,)`, the document of each pair.
            training: Whether a gradient will be computed. Default `False`.

        Returns:
            Scores `(pairs,)`.
        """
        return self.match(
            rows_of(self.represent(query, "query", training), query_rows),
            rows_of(
                self.represent(document, "document", training), document_rows
            ),
            training,
        )

    def call(
        self,
        query: WordSequences,
        document: WordSequences,
        training: bool = False,
    ) -> tf.Tensor:
        """Scores pairs of texts."""
        rows = tf.range(tf.size(query.lengths))
        return self.score_rows(query, document, rows, rows, training)


def as_rows(texts: Texts) -> FlatSequences:
    """Converts padded word vectors to `FlatSequences`, a row for each word."""
    if isinstance(texts, FlatSequences):
        return texts
    return FlatSequences.from_padded(texts.vectors, texts.lengths)


def rows_of(represented: Any, index: tf.Tensor) -> Any:
    """Gathers rows of the tensors that represent texts."""
    return tf.nest.map_structure(
        lambda part: tf.gather(part, index), represented
    )


def check_pairs(queries: Sequence[str], documents: Sequence[str]) -> None:
    """Raises `InputError` for no pairs, or for different numbers of texts."""
    if not queries or len(queries) != len(documents):
        raise InputError(
            f"found {len(queries)} queries and {len(documents)} documents:"
            " give one document for each query, and at least one pair"
        )
