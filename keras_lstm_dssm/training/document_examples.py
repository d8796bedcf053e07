"""DocumentExamples: batches of documents with their targets, shuffled."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.data import Document
from keras_lstm_dssm.data.batches import permutation
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.text import as_bytes
from keras_lstm_dssm.training.document_targets import DocumentTargets

_POOL = 16
"""Number of batches whose documents are sorted by length together."""


class DocumentExamples:
    """Holds documents and their targets, and streams them for training.

    The sentences of all documents are held in memory, about as many bytes as
    their text has.

    Args:
        documents: The documents, which are streamed once.
        targets: The salient sentences and key words of these documents.

    Raises:
        InputError: There are no documents, or one has no target.

    Example:
    >>> examples = DocumentExamples(folder.of("train"), targets)
    >>> model.fit(examples.batches(32, epochs=1, seed=0))
    """

    def __init__(
        self, documents: Iterable[Document], targets: DocumentTargets
    ) -> None:
        sentences: list[bytes] = []
        salient: list[np.ndarray] = []
        key_words: list[str] = []
        lengths, word_counts = [], []
        for document in documents:
            target = targets.of(document)
            sentences += as_bytes(document.sentences)
            lengths.append(target.sentences)
            salient.append(target.marks())
            key_words += target.key_words
            word_counts.append(len(target.key_words))
        if not lengths:
            raise InputError(
                "found no documents to train on, expected some with the split"
                " train: check the data"
            )
        self._lengths = np.array(lengths)
        self._documents = _ragged(np.array(sentences, object), lengths)
        self._salient = _ragged(np.concatenate(salient), lengths)
        self._key_words = _ragged(
            np.array(as_bytes(key_words), object), word_counts
        )

    def __len__(self) -> int:
        """Returns the number of documents."""
        return len(self._lengths)

    def batches(
        self,
        batch_size: int = 32,
        *,
        epochs: int,
        seed: int,
        first_step: int = 0,
    ) -> tf.data.Dataset:
        """Streams all documents, shuffled anew in each epoch.

        The documents of a batch have similar numbers of sentences: those of
        16 batches are drawn at random, sorted by their number of
        sentences and cut into batches, and the batches of all are shuffled.

        The order is a function of `seed` and the epoch alone. A run that
        resumes after n training steps, with `first_step=n`, sees exactly the
        batches that an uninterrupted run sees from n on.

        Args:
            batch_size: Documents in a batch. One batch of an epoch holds
                what is left, so an epoch has ceil(len / batch_size) batches.
            epochs: The number of passes over the documents.
            seed: Any int; another seed gives another order.
            first_step: The number of batches to leave out at the start.

        Returns:
            A dataset of (documents, salient, key words), see `in_order`. Its
            cardinality, over all epochs, is known.

        Raises:
            InputError: `batch_size` is less than 1.

        Example:
        >>> model.fit(examples.batches(32, epochs=1, seed=0))
        """
        _check(batch_size)
        per_epoch = -(-len(self) // batch_size)
        first_epoch, skipped = divmod(first_step, per_epoch)

        def rows() -> Iterator[np.ndarray]:
            for epoch in range(first_epoch, epochs):
                batches = self._epoch(batch_size, seed, epoch)
                yield from batches[skipped if epoch == first_epoch else 0 :]

        return self._gathered(rows, max(0, epochs * per_epoch - first_step))

    def in_order(self, batch_size: int = 32) -> tf.data.Dataset:
        """Streams all documents once, in their order.

        Args:
            batch_size: Documents in a batch; the last one holds what is left.

        Returns:
            A dataset of (documents, salient, key words): ragged strings
            `[batch, (sentences)]`, ragged bool `[batch, (sentences)]`, ragged
            strings `[batch, (words)]`. Its cardinality is known.

        Raises:
            InputError: `batch_size` is less than 1.
        """
        _check(batch_size)
        starts = range(0, len(self), batch_size)
        every = np.arange(len(self))
        return self._gathered(
            lambda: (every[start : start + batch_size] for start in starts),
            len(starts),
        )

    def _epoch(
        self, batch_size: int, seed: int, epoch: int
    ) -> list[np.ndarray]:
        """Returns the documents of each batch of an epoch."""
        order = permutation(len(self), seed, epoch)
        batches = []
        for pool in range(0, len(order), _POOL * batch_size):
            rows = order[pool : pool + _POOL * batch_size]
            rows = rows[np.argsort(self._lengths[rows], kind="stable")]
            batches += [
                rows[start : start + batch_size]
                for start in range(0, len(rows), batch_size)
            ]
        shuffle = permutation(len(batches), seed, epoch, 1)
        return [batches[number] for number in shuffle]

    def _gathered(self, rows: Any, count: int) -> tf.data.Dataset:
        """Makes a dataset of the examples in the given rows.

        Args:
            rows: Function that yields int `[batch]`, row numbers.
            count: The number of batches.
        """
        parts = self._documents, self._salient, self._key_words
        return (
            tf.data.Dataset.from_generator(
                rows, output_signature=tf.TensorSpec([None], tf.int64)
            )
            .map(
                lambda batch: tuple(tf.gather(part, batch) for part in parts),
                tf.data.AUTOTUNE,
            )
            .prefetch(tf.data.AUTOTUNE)
            .apply(tf.data.experimental.assert_cardinality(count))
        )


def _check(batch_size: int) -> None:
    if batch_size < 1:
        raise InputError(f"batch_size must be 1 or more, not {batch_size}")


def _ragged(values: np.ndarray, lengths: list[int]) -> tf.RaggedTensor:
    dtype = tf.bool if values.dtype == bool else tf.string
    return tf.RaggedTensor.from_row_lengths(
        tf.constant(values, dtype), tf.constant(lengths, tf.int64)
    )
