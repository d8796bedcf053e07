"""DocumentExamples: batches of documents with their targets, shuffled."""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.data import Document
from keras_lstm_dssm.data.batches import permutation
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.text import as_bytes
from keras_lstm_dssm.training.document_targets import DocumentTargets

_POOL = 16
"""Number of batches whose documents are sorted by length together."""

_Batch = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Int arrays: the documents, all sentences to read, their number in each."""


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
        self._starts = np.cumsum(lengths) - lengths
        self._sentences = tf.constant(np.array(sentences, object), tf.string)
        self._salient = tf.constant(np.concatenate(salient), tf.bool)
        self._key_words = tf.RaggedTensor.from_row_lengths(
            tf.constant(np.array(as_bytes(key_words), object), tf.string),
            tf.constant(word_counts, tf.int64),
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
        excerpt: int = 0,
    ) -> tf.data.Dataset:
        """Streams all documents, shuffled anew in each epoch.

        The documents of a batch have similar numbers of sentences: those of
        16 batches are drawn at random, sorted by their number of sentences
        (at most `excerpt`) and cut into batches, and the batches of all are
        shuffled.

        The order is a function of `seed` and the epoch alone. A run that
        resumes after n training steps, with `first_step=n`, sees exactly the
        batches that an uninterrupted run sees from n on.

        Args:
            batch_size: Documents in a batch. One batch of an epoch holds
                what is left, so an epoch has ceil(len / batch_size) batches.
            epochs: The number of passes over the documents.
            seed: Any int; another seed gives another order.
            first_step: The number of batches to leave out at the start.
            excerpt: Largest number of sentences of an excerpt. Each epoch
                then has another excerpt of each document: 1 to `excerpt` of
                its sentences (the logarithm of this number is uniform),
                drawn at random, in their order. Default 0: whole documents.

        Returns:
            A dataset of (documents, salient, key words), see `in_order`. Its
            cardinality, over all epochs, is known.

        Raises:
            InputError: `batch_size` is less than 1, or `excerpt` less than 0.

        Example:
        >>> model.fit(examples.batches(32, epochs=1, seed=0))
        """
        _check(batch_size)
        if excerpt < 0:
            raise InputError(f"excerpt must be 0 or more, not {excerpt}")
        per_epoch = -(-len(self) // batch_size)
        last_step = epochs * per_epoch

        def batches() -> Iterator[_Batch]:
            for step in range(first_step, last_step):
                epoch, number = divmod(step, per_epoch)
                if number == 0 or step == first_step:
                    epoch_rows = self._epoch(batch_size, seed, epoch, excerpt)
                rows = epoch_rows[number]
                counts = self._lengths[rows]
                random = np.random.default_rng([seed % 2**64, step])
                if excerpt:
                    drawn = (excerpt + 1) ** random.uniform(size=len(rows))
                    counts = np.minimum(counts, drawn.astype(int))
                yield self._excerpts(rows, counts, random)

        return self._gathered(batches, max(0, last_step - first_step))

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
        random = np.random.default_rng(0)  # whole documents draw nothing

        def batches() -> Iterator[_Batch]:
            for start in starts:
                rows = every[start : start + batch_size]
                yield self._excerpts(rows, self._lengths[rows], random)

        return self._gathered(batches, len(starts))

    def _epoch(
        self, batch_size: int, seed: int, epoch: int, excerpt: int
    ) -> list[np.ndarray]:
        """Returns the documents of each batch of an epoch."""
        order = permutation(len(self), seed, epoch)
        # Documents above the length of an excerpt remain in random order.
        lengths = np.minimum(self._lengths, excerpt or self._lengths.max())
        batches = []
        for pool in range(0, len(order), _POOL * batch_size):
            rows = order[pool : pool + _POOL * batch_size]
            rows = rows[np.argsort(lengths[rows], kind="stable")]
            batches += [
                rows[start : start + batch_size]
                for start in range(0, len(rows), batch_size)
            ]
        shuffle = permutation(len(batches), seed, epoch, 1)
        return [batches[number] for number in shuffle]

    def _excerpts(
        self, rows: np.ndarray, counts: np.ndarray, random: np.random.Generator
    ) -> _Batch:
        """Draws `counts` sentences of documents, and keeps their order."""
        sentences = [
            start
            + (
                np.arange(length)
                if count == length
                else np.sort(random.choice(length, count, replace=False))
            )
            for start, length, count in zip(
                self._starts[rows], self._lengths[rows], counts, strict=True
            )
        ]
        return rows, np.concatenate(sentences), counts

    def _gathered(
        self, batches: Callable[[], Iterator[_Batch]], count: int
    ) -> tf.data.Dataset:
        """Makes a dataset of the examples of batches.

        Args:
            batches: Yields the batches.
            count: The number of batches.
        """
        numbers = tf.TensorSpec([None], tf.int64)

        def examples(
            rows: tf.Tensor, sentences: tf.Tensor, counts: tf.Tensor
        ) -> tuple[tf.RaggedTensor, ...]:
            return (
                *(
                    tf.RaggedTensor.from_row_lengths(
                        tf.gather(values, sentences), counts, validate=False
                    )
                    for values in (self._sentences, self._salient)
                ),
                tf.gather(self._key_words, rows),
            )

        return (
            tf.data.Dataset.from_generator(
                batches, output_signature=(numbers, numbers, numbers)
            )
            .map(examples, tf.data.AUTOTUNE)
            .prefetch(tf.data.AUTOTUNE)
            .apply(tf.data.experimental.assert_cardinality(count))
        )


def _check(batch_size: int) -> None:
    if batch_size < 1:
        raise InputError(f"batch_size must be 1 or more, not {batch_size}")
