"""`PairScorer`, which scores pairs of texts by a matcher.

A scorer is trained on triples of a query, a positive and a negative document.
"""

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.layers.bidirectional_recurrence import FlatSequences
from keras_lstm_dssm.layers.word_vectors import WordVectors
from keras_lstm_dssm.matchers.matcher import Matcher, rows_of
from keras_lstm_dssm.models.pair_batch import pair_batches
from keras_lstm_dssm.models.text_model import (
    Hasher,
    TextModel,
    check_rows,
    check_three_lists,
    hashed_in_parallel,
    is_empty,
    is_hashed,
    is_string_batch,
    relative_weights,
    sample_weights,
)
from keras_lstm_dssm.registration import register
from keras_lstm_dssm.text.many_texts import (
    HashedTextCache,
    RepresentedTexts,
    score_in_batches,
)
from keras_lstm_dssm.text.word_hashing import WordBatch, as_strings
from lstm_dssm_client.signatures import as_bytes, pairs_as_bytes, query_as_bytes


class HashedTriples(NamedTuple):
    """Holds a hashed batch of triples, with each distinct text once."""

    query: WordBatch  # its `text_index` is `[batch]`
    # The positives and the negatives. The `text_index` of `document`,
    # `[2 * batch]`, has the positives of all triples, then all negatives.
    document: WordBatch
    weights: tf.Tensor | None = None  # float32 `[batch]`; `None`: all are 1


class TripleHasher(Hasher):
    """Hashes batches of texts for a `PairScorer`."""

    hashed = HashedTriples

    def __init__(self, words: WordVectors) -> None:
        self.words = words
        self.cache = words.cache()

    def __call__(
        self,
        query: tf.Tensor,
        positive: tf.Tensor,
        negative: tf.Tensor,
        weights: tf.Tensor | None = None,
        cache: HashedTextCache | None = None,
    ) -> HashedTriples:
        """Hashes the texts of a batch of triples, strings `[batch]` each."""
        check_rows(queries=query, positives=positive, negatives=negative)
        # A graph with a cache cannot be saved, so the cache is optional.
        distinct = (cache or self.words).distinct
        return HashedTriples(
            distinct(query),
            distinct(tf.concat([positive, negative], axis=0)),
            weights,
        )

    def dataset(
        self, batches: tf.data.Dataset, untrained: bool = False
    ) -> tf.data.Dataset:
        """Hashes a dataset's batches in parallel."""
        if is_hashed(batches.element_spec, HashedTriples):
            return batches
        return hashed_in_parallel(batches, partial(self, cache=self.cache))


def triple_batches(
    x: Any,
    batch_size: int | None = None,
    shuffle_seed: int | None = None,
    sample_weight: Any = None,
) -> tf.data.Dataset:
    """Makes batches of the three lists x, or checks and returns a dataset x."""
    if isinstance(x, tf.data.Dataset):
        if sample_weight is not None:
            raise InputError(
                "sample_weight is for lists: make weights the fourth part of a"
                " dataset's batches, float32 [batch]"
            )
        if not is_hashed(x.element_spec, HashedTriples):
            _check_spec(x.element_spec)
        return x
    columns = _three_lists(x)
    rows = len(columns[0])
    if sample_weight is not None:
        columns = *columns, sample_weights(sample_weight, rows)
    triples = tf.data.Dataset.from_tensor_slices(columns)
    if shuffle_seed is not None:
        triples = triples.shuffle(max(rows, 1), shuffle_seed)
    return triples.batch(batch_size or 128)


def _three_lists(x: Any) -> tuple[tf.Tensor, ...]:
    check_three_lists(x, "(query, positive, negative)", "three lists of texts")
    columns = tuple(as_strings(column) for column in x)
    sizes = [len(column) for column in columns]
    if len(set(sizes)) > 1:
        raise InputError(
            f"found {sizes[0]} queries, {sizes[1]} positives and {sizes[2]}"
            " negatives: give one positive and one negative for each query"
        )
    return columns


def _check_spec(spec: Any) -> None:
    if (
        not isinstance(spec, tuple)
        or len(spec) not in (3, 4)
        or not all(map(is_string_batch, spec[:3]))
        or (len(spec) == 4 and spec[3].dtype != tf.float32)
    ):
        raise InputError(
            "expected a dataset of (query, positive, negative) batches, string"
            " tensors [batch], and perhaps weights, float32 [batch], got"
            f" {spec}; make batches with .batch(128)"
        )


@register
class PairScorer(TextModel):
    """Scores pairs of a query and a document by comparing all their words.

    A `Matcher`, such as `MVLSTM`, compares every word of the query with every
    word of the document. A `PairScorer` cannot search an index, but reorders
    the candidates of another system.

    `fit` takes triples of a query, a relevant document (the positive) and a
    document that is not relevant (the negative). Give a tuple of three lists of
    texts, or a `tf.data.Dataset` of batches `(query, positive, negative)`,
    strings `[batch]`; `Triples.batches` makes such a dataset. Batches may have
    a fourth part, weights, float32 `[batch]`: the loss is then
    sum(w loss) / sum(w).

    The loss is `PairwiseHinge`, or any Keras loss of `y_true` and `y_pred`,
    both `(batch, 2)`. Each row of `y_true` is 1 and 0. Each row of `y_pred` has
    the scores of the positive and the negative. Accuracy is the share of
    triples in which the positive has a higher score than the negative.

    Args:
        words: Layer that turns the texts of queries and documents into word
            vectors.
        matcher: Layer that scores two sequences of word vectors.
            `matcher.word_dimension` must equal `words.dimension`. If
            `matcher.trains_words` is `False`, the table of `words` is frozen.
        seed: Seed of the order of triples, if `fit` gets lists. Default 0.
        **kwargs: Arguments of `keras.Model`.

    Call arguments:
        inputs: `(query, document)`, each strings `(batch,)` or `WordBatch`.
        training: Whether a gradient will be computed. Default `False`.

    Returns:
        Scores `(batch,)`. Scores of different queries are not comparable.

    Raises:
        InputError: `matcher` expects word vectors of another width.

    Example:
    >>> scorer = PairScorer(VocabularyVectors(vocabulary), MVLSTM())
    >>> scorer.compile(Adagrad(0.03), PairwiseHinge())
    >>> scorer.fit((queries, positives, negatives), epochs=5)
    >>> scorer.score("angle bracket", ["12-Gauge Angle", "Wood glue"])
    array([ 1.3, -0.2], dtype=float32)
    """

    kind = "scorer"
    hasher: TripleHasher
    rankings_hint = (
        "measure rankings with evaluation.evaluate_systems(Task."
        'from_collection(collection, "test", "lists"), systems)'
    )
    weights_hint = (
        "give x=(queries, positives, negatives), and further examples as "
        "validation_data"
    )

    def __init__(
        self, words: WordVectors, matcher: Matcher, seed: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(TripleHasher(words), seed, **kwargs)
        if matcher.word_dimension != words.dimension:
            raise InputError(
                f"the matcher expects word vectors of width"
                f" {matcher.word_dimension}, but words has {words.dimension}:"
                " make both equal"
            )
        if not matcher.trains_words:
            # Keras would warn that a trainable table has no gradient.
            words.embedding.trainable = False
        if not matcher.trainable:
            # With `trainable=False`, Keras does not freeze the weights that the
            # matcher's constructor creates.
            for weight in matcher.weights:
                weight.trainable = False
        self.words = words
        self.matcher = matcher

    def call(
        self, inputs: tuple[Any, Any], training: bool = False
    ) -> tf.Tensor:
        """Returns the score of each query and its document."""
        query, document = (
            text
            if isinstance(text, WordBatch)
            else self.words.distinct(as_strings(text))
            for text in inputs
        )
        check_rows(queries=query.text_index, documents=document.text_index)
        return self._score_rows(query, document, training)

    def _check_ready(self) -> None:
        self.matcher.check_pretrained()

    def predict(
        self,
        x: Any,
        y: Any = None,
        batch_size: int | None = None,
        verbose: Any = "auto",
        **kwargs: Any,
    ) -> np.ndarray:
        """Returns the scores of pairs, float `(pairs,)`.

        x and y are lists of queries and documents, or x is a dataset of batches
        `(query, document)`. `score_pairs` is faster for texts of different
        lengths. For the other arguments see `keras.Model.predict`;
        `batch_size` is 256 by default.
        """
        pairs = pair_batches(x, y, batch_size)
        if is_empty(pairs):  # Keras would raise UnboundLocalError
            return np.zeros(0, self.compute_dtype)
        return super().predict(
            # Without the outer tuple, Keras would use the documents as labels.
            pairs.map(lambda *pair: (pair[:2],)).prefetch(tf.data.AUTOTUNE),
            verbose=verbose,
            **kwargs,
        )

    def score(
        self, query: str, documents: Any, batch_size: int = 1024
    ) -> np.ndarray:
        """Returns the scores of any number of documents for one query.

        If `matcher.scores_by_numpy` is true, two caches are used: up to 256 MB
        of memory for the representations of documents, and up to some 200 MB
        for the words of texts. Several threads may call this method.

        Args:
            query: The query's text.
            documents: Any iterable of texts.
            batch_size: Number of documents in a batch. Default 1024.

        Returns:
            Float `[documents]`, in the order of the documents.

        Raises:
            InputError: `query` is not a single text, or `documents` is not an
                iterable of texts.
        """
        texts = as_bytes(documents)
        by_numpy = self.matcher.scores_by_numpy
        score_batch = (self._numpy_scorer if by_numpy else self._graph_scorer)(
            query_as_bytes(query)
        )

        def score(rows: np.ndarray) -> np.ndarray:
            return score_batch([texts[row] for row in rows.tolist()])

        lengths = [len(text) for text in texts]
        return score_in_batches(score, lengths, batch_size)

    def score_pairs(
        self,
        queries: Any,
        documents: Any,
        batch_size: int = 256,
        progress: bool = False,
    ) -> np.ndarray:
        """Returns the scores of many pairs of texts, float `[pairs]`.

        `queries` and `documents` are iterables with equal numbers of texts.

        Raises:
            InputError: The texts are not strings, or the numbers of queries and
                documents differ.
        """
        columns = pairs_as_bytes(queries, documents)

        def score(rows: np.ndarray) -> np.ndarray:
            batch = [
                tf.constant([column[row] for row in rows], tf.string)
                for column in columns
            ]
            return self._score_in_graph(*batch).numpy()

        lengths = [len(text) for text in columns[1]]
        return score_in_batches(score, lengths, batch_size, progress)

    def predict_step(self, data: tuple[Any, ...]) -> tf.Tensor:
        """Returns the scores of a batch of pairs."""
        return self(data[0])

    def batch_loss(self, batch: HashedTriples, training: bool) -> tf.Tensor:
        """Returns the loss of the positives against the negatives."""
        index = tf.tile(batch.query.text_index, [2])
        queries = batch.query._replace(text_index=index)
        scores = self._score_rows(queries, batch.document, training)
        scores = tf.transpose(tf.reshape(scores, [2, -1]))
        labels = tf.broadcast_to(
            tf.constant([1, 0], scores.dtype), tf.shape(scores)
        )
        weights = relative_weights(self, batch.weights)
        loss = self.compute_loss(
            y=labels, y_pred=scores, sample_weight=weights, training=training
        )
        self._record(loss, scores[:, 0] > scores[:, 1], batch.weights)
        return loss

    def _batches(
        self, x: Any, y: Any = None, **options: Any
    ) -> tf.data.Dataset:
        self._refuse(y=y)
        return triple_batches(x, **options)

    def _score_rows(
        self, query: WordBatch, document: WordBatch, training: bool = False
    ) -> tf.Tensor:
        return self.matcher.score_rows(
            self._word_vectors(query, training),
            self._word_vectors(document, training),
            query.text_index,
            document.text_index,
            training,
        )

    def _word_vectors(self, words: WordBatch, training: bool = False) -> Any:
        if not self.matcher.reads_flat:
            return self.words(words, training=training)
        table = self.words.embedding(words, training=training)
        return FlatSequences(table, words.flat()[0], words.lengths)

    def _numpy_scorer(
        self, query: bytes
    ) -> Callable[[list[bytes]], np.ndarray]:
        (query_rows,) = self._represent([query], "query")

        def score(texts: list[bytes]) -> np.ndarray:
            documents = self._documents(texts)
            lengths = np.array([*map(len, documents)])
            order = np.argsort(-lengths, kind="stable")
            rows = np.concatenate([documents[i] for i in order.tolist()])
            scores = np.empty(len(texts), rows.dtype)
            scores[order] = self.matcher.score_query(
                query_rows, rows, lengths[order]
            )
            return scores

        return score

    @cached_property
    def _documents(self) -> RepresentedTexts:
        weights = [*self.words.weights, *self.matcher.weights]
        represent = partial(self._represent, side="document")
        return RepresentedTexts(represent, weights)

    def _represent(self, texts: list[bytes], side: str) -> list[np.ndarray]:
        fields, _ = self.hasher.cache.fields(np.array(texts, object))
        batch = WordBatch(*fields)
        is_word = np.arange(batch.words.shape[1]) < batch.lengths[:, np.newaxis]
        table = self.words.embedding.call(batch).numpy()  # `__call__` is slower
        sequences = FlatSequences(table, batch.words[is_word], batch.lengths)
        rows = self.matcher.represent_by_numpy(sequences, side)
        return [rows[i] for i in batch.text_index.tolist()]

    def _graph_scorer(
        self, query: bytes
    ) -> Callable[[list[bytes]], np.ndarray]:
        represent, score_documents = self._query_graphs
        query_tensors = represent(tf.constant([query]))
        return lambda texts: score_documents(
            query_tensors, tf.constant(texts, tf.string)
        ).numpy()

    @cached_property
    def _query_graphs(self) -> tuple[Any, Any]:
        represent = tf.function(
            lambda texts: self.matcher.represent(
                self._word_vectors(self.words.distinct(texts)), "query"
            ),
            autograph=False,
        ).get_concrete_function(tf.TensorSpec([1], tf.string))
        # The specs leave the number of words open: one graph fits all queries.
        query = tf.nest.map_structure(
            lambda part: tf.TensorSpec(part.shape, part.dtype),
            represent.structured_outputs,
        )
        documents = tf.function(
            self._score_documents, autograph=False
        ).get_concrete_function(query, tf.TensorSpec([None], tf.string))
        return represent, documents

    @cached_property
    def _score_in_graph(self) -> Any:
        return tf.function(
            lambda queries, documents: self._score_rows(
                self.words.distinct(queries), self.words.distinct(documents)
            ),
            autograph=False,
        ).get_concrete_function(*[tf.TensorSpec([None], tf.string)] * 2)

    def _score_documents(self, query: Any, texts: tf.Tensor) -> tf.Tensor:
        words = self.words.distinct(texts)
        document = self.matcher.represent(self._word_vectors(words), "document")
        return self.matcher.match(
            rows_of(query, tf.zeros_like(words.text_index)),
            rows_of(document, words.text_index),
        )

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor arguments as a dict, for `from_config`."""
        serialize = keras.saving.serialize_keras_object
        return {
            "name": self.name,
            "words": serialize(self.words),
            "matcher": serialize(self.matcher),
            "seed": self.seed,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "PairScorer":
        """Rebuilds the model with its layers."""
        return cls(**keras.saving.deserialize_keras_object(config))
