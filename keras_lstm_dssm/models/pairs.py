"""PairHasher: a batch of queries and clicked documents -> `HashedPairs`."""

from functools import partial
from typing import Any, NamedTuple

import tensorflow as tf

from keras_lstm_dssm.encoders import (
    CombinedEncoder,
    FixedColumns,
    TextEncoder,
)
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.layers import LetterTrigrams
from keras_lstm_dssm.models.hashed_model import (
    check_rows,
    hashed_in_parallel,
)
from keras_lstm_dssm.models.taught_pairs import teacher_cosines
from keras_lstm_dssm.text import HashedTextCache, WordBatch, as_strings
from keras_lstm_dssm.text.word_batch import text_fingerprints
from keras_lstm_dssm.workers import JointTitles


class HashedPairs(NamedTuple):
    """Holds a hashed batch of pairs, each distinct text once.

    Attributes:
        query: The queries; its `text_index` is `[batch]`.
        document: The clicked documents; its `text_index` is `[batch]`, its
            distinct texts include the judged or mined negatives.
        negatives: int32 `[batch, k]`: for each row, which distinct texts of
            `document` are its judged or mined negatives; k may be 0.
        log_q: float `[batch, 1 + k]`, the log of the share of clicks of the
            clicked document and of the negatives; or `None`.
        teacher: float `[batch, distinct]`, a teacher's cosines of the rows
            with the distinct texts of `document`, see `teacher_cosines`; or
            `None`.
        fingerprints: int64 `[distinct]`, those of the distinct titles, by
            which several workers know equal ones; or `None`.
        joint: What the batches of several workers have together, see
            `JointStep`; or `None`.
    """

    query: WordBatch
    document: WordBatch
    negatives: tf.Tensor
    log_q: tf.Tensor | None = None
    teacher: tf.Tensor | None = None
    fingerprints: tf.Tensor | None = None
    joint: JointTitles | None = None


class PairHasher:
    """Hashes batches of texts for two towers.

    With tied towers, queries and documents are hashed together, so that a
    training step reads each row of their one table once.

    Args:
        query_encoder: The encoder of queries.
        document_encoder: The encoder of documents.

    Attributes:
        fingerprints: Whether to compute those of the titles, for a training
            by several workers. Default `False`.
        query_cache: `HashedTextCache` of the queries.
        document_cache: `HashedTextCache` of the documents; the same object
            as `query_cache` if both encoders have the same hashing settings.

    Example:
    >>> encoder = LSTMEncoder(8)
    >>> hasher = PairHasher(encoder, encoder)
    >>> hasher(tf.constant(["bolt"]), tf.constant(["hex bolt"])).negatives.shape
    TensorShape([1, 0])
    """

    def __init__(
        self, query_encoder: TextEncoder, document_encoder: TextEncoder
    ) -> None:
        self.of_query = query_encoder.trigrams
        self.of_document = document_encoder.trigrams
        self.tied = query_encoder is document_encoder
        self.fingerprints = False
        self.query_cache = self.of_query.cache()
        self.document_cache = (
            self.query_cache
            if _rules(self.of_query) == _rules(self.of_document)
            else self.of_document.cache()
        )
        query_columns = _with_fixed_columns(query_encoder, self.query_cache)
        self._with_fixed = (
            query_columns,
            query_columns
            if self.tied
            else _with_fixed_columns(document_encoder, self.document_cache),
        )

    def __call__(
        self,
        query: Any,
        document: Any,
        extras: dict[str, tf.Tensor] | None = None,
        caches: tuple[Any, Any] | None = None,
    ) -> HashedPairs:
        """Hashes one batch; a hashed `WordBatch` is returned as it is.

        Args:
            query: Strings `[batch]` or `WordBatch`.
            document: Strings `[batch]` or `WordBatch`.
            extras: With strings: `negatives`, strings `[batch, k]`; `log_q`,
                float `[batch]` or `[batch, 1 + k]`; `teacher`, float `[batch,
                2 + k, d]`, with `teacher_texts`, int `[batch, 2 + k]`; each
                optional.
            caches: Two objects with a method `distinct`, which hash the
                queries and the documents in place of the encoders' layers. A
                graph that contains caches cannot be saved. Default `None`.
        """
        extras = extras or {}
        if isinstance(query, WordBatch):
            clicked = document.text_index
            check_rows(queries=query.text_index, documents=clicked)
            return HashedPairs(query, document, _none_of(clicked))
        query, titles = as_strings(query), as_strings(document)
        equal = check_rows(queries=query, documents=titles, **extras)
        with tf.control_dependencies([equal]):
            query = tf.identity(query)
        rows = tf.size(titles)
        if "negatives" in extras:
            negatives = tf.reshape(extras["negatives"], [-1])
            titles = tf.concat([titles, negatives], axis=0)
        of_query, of_document = caches or (self.of_query, self.of_document)
        if self.tied:
            both = of_query.distinct(tf.concat([query, titles], axis=0))
            query_index, title_index = tf.split(
                both.text_index, [rows, tf.size(titles)]
            )
            queries = both._replace(text_index=query_index)
            documents = both._replace(text_index=title_index)
        else:
            queries = of_query.distinct(query)
            documents = of_document.distinct(titles)
        clicked, rest = (
            documents.text_index[:rows],
            documents.text_index[rows:],
        )
        negatives = (
            tf.reshape(rest, tf.shape(extras["negatives"]))
            if "negatives" in extras
            else _none_of(clicked)
        )
        teacher = None
        if "teacher" in extras:
            teacher = teacher_cosines(
                extras["teacher"],
                extras["teacher_texts"],
                documents.text_index,
                tf.size(documents.lengths),
            )
        return HashedPairs(
            queries,
            documents._replace(text_index=clicked),
            # Of unknown width, so that one traced training step serves for
            # the epochs before the first mining and for those after it.
            tf.raw_ops.PlaceholderWithDefault(
                input=negatives, shape=[None, None]
            ),
            extras.get("log_q"),
            teacher,
            self._fingerprints(titles, documents)
            if self.fingerprints
            else None,
        )

    def _fingerprints(
        self, titles: tf.Tensor, documents: WordBatch
    ) -> tf.Tensor:
        of_rows = text_fingerprints(
            titles, self.of_document.max_words, self.of_document.split
        )
        return tf.math.unsorted_segment_max(
            of_rows, documents.text_index, tf.size(documents.lengths)
        )

    def dataset(
        self, pairs: tf.data.Dataset, fixed: bool = False
    ) -> tf.data.Dataset:
        """Hashes a dataset's batches, in parallel with the training steps.

        Each text is hashed once and cached for later epochs.

        Args:
            pairs: Dataset of batches of texts, or of hashed ones, which are
                left as they are.
            fixed: Whether each batch includes the untrained columns of its
                vectors (`WordBatch.fixed`). Only the model of these encoders
                can then read the dataset, and only with its present weights.
                Default `False`.

        Raises:
            InputError: The texts are hashed already, and the towers tied.
        """
        if is_hashed(pairs.element_spec):
            return pairs
        if isinstance(pairs.element_spec[0], WordBatch):
            if self.tied:
                raise InputError(
                    "tied towers hash queries and documents together; give a "
                    "dataset of strings"
                )
            return pairs
        if fixed:
            self.forget_outdated()
            hash_batch = partial(self, caches=self._with_fixed)
        else:
            caches = self.query_cache, self.document_cache
            hash_batch = partial(self, caches=caches)
        return hashed_in_parallel(pairs, hash_batch)

    def forget_outdated(self) -> None:
        """Empties the caches of untrained columns that other weights filled.

        See `FixedColumns.forget_outdated`.
        """
        for columns in set(self._with_fixed):  # tied towers share one
            if isinstance(columns, FixedColumns):
                columns.forget_outdated()


def is_hashed(spec: Any) -> bool:
    """Returns whether a dataset's spec is that of `PairHasher.dataset`."""
    return isinstance(spec, tuple) and isinstance(spec[0], HashedPairs)


def _rules(trigrams: LetterTrigrams) -> tuple[Any, ...]:
    return trigrams.oov_buckets, trigrams.max_words, trigrams.split


def _with_fixed_columns(
    encoder: TextEncoder, cache: HashedTextCache
) -> HashedTextCache | FixedColumns:
    # A subclass may compose its vectors in another way.
    if type(encoder) is CombinedEncoder:
        return FixedColumns(encoder, cache)
    return cache


def _none_of(clicked: tf.Tensor) -> tf.Tensor:
    return tf.zeros([tf.size(clicked), 0], tf.int32)
