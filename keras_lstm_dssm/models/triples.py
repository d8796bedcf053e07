"""Triples of a query, a positive and a negative: checked, batched, hashed."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.layers import WordVectors
from keras_lstm_dssm.models.hashed_model import (
    check_rows,
    hashed_in_parallel,
)
from keras_lstm_dssm.text import WordBatch, as_strings


class HashedTriples(NamedTuple):
    """Holds a hashed batch of triples, each distinct text once.

    Attributes:
        query: The queries; its `text_index` is `[batch]`.
        document: The positives and, after them, the negatives; its
            `text_index` is `[2 * batch]`.
    """

    query: WordBatch
    document: WordBatch


class TripleHasher:
    """Hashes batches of texts for a `PairScorer`.

    Args:
        words: The layer that will look up the words.

    Example:
    >>> hasher = TripleHasher(scorer.words)
    >>> hasher(
    ...     tf.constant(["bolt"]),
    ...     tf.constant(["hex bolt"]),
    ...     tf.constant(["wood glue"]),
    ... ).document.text_index.shape
    TensorShape([2])
    """

    def __init__(self, words: WordVectors) -> None:
        self.words = words

    def __call__(
        self, query: tf.Tensor, positive: tf.Tensor, negative: tf.Tensor
    ) -> HashedTriples:
        """Hashes one batch, strings `[batch]` each."""
        check_rows(queries=query, positives=positive, negatives=negative)
        return HashedTriples(
            self.words.distinct(query),
            self.words.distinct(tf.concat([positive, negative], axis=0)),
        )

    def dataset(self, triples: tf.data.Dataset) -> tf.data.Dataset:
        """Hashes a dataset's batches, in parallel with the training steps."""
        if is_hashed(triples.element_spec):
            return triples
        return hashed_in_parallel(triples, self)


def is_hashed(spec: Any) -> bool:
    """Returns whether a spec is that of a batch of `TripleHasher.dataset`."""
    return isinstance(spec, tuple) and isinstance(spec[0], HashedTriples)


def triple_batches(
    x: Any,
    batch_size: int | None = None,
    shuffle_seed: int | None = None,
) -> tf.data.Dataset:
    """Makes a dataset of string batches; a given dataset is returned as it is.

    Args:
        x: Dataset of `(query, positive, negative)` batches, or three lists
            of texts of equal length.
        batch_size: Triples in a batch, for lists; 128 by default.
        shuffle_seed: Seed by which lists are shuffled, anew in each pass;
            `None` keeps the order.

    Raises:
        InputError: x is neither, or its parts are not strings of one length.
    """
    if isinstance(x, tf.data.Dataset):
        if not is_hashed(x.element_spec):
            _check_spec(x.element_spec)
        return x
    columns = _three_lists(x)
    triples = tf.data.Dataset.from_tensor_slices(columns)
    if shuffle_seed is not None:
        triples = triples.shuffle(max(len(columns[0]), 1), shuffle_seed)
    return triples.batch(batch_size or 128)


def _three_lists(x: Any) -> tuple[tf.Tensor, ...]:
    if not isinstance(x, Sequence) or isinstance(x, str) or len(x) != 3:
        raise InputError(
            "expected a tf.data.Dataset of (query, positive, negative)"
            " batches, or three lists of texts in a tuple; got"
            f" {type(x).__name__} of"
            f" {len(x) if isinstance(x, Sequence) else 'no'} parts"
        )
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
        or len(spec) != 3
        or not all(
            isinstance(part, tf.TensorSpec)
            and part.dtype == tf.string
            and part.shape.rank in (1, None)
            for part in spec
        )
    ):
        raise InputError(
            "expected a dataset of (query, positive, negative) batches, string"
            f" tensors [batch], got {spec}; make them with .batch(128)"
        )
