"""Checks and hashes batches of documents and their targets, for `KeyVec`."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.layers.word_vectors import WordVectors
from keras_lstm_dssm.models.text_model import (
    Hasher,
    check_rows,
    check_three_lists,
    is_hashed,
)
from keras_lstm_dssm.text.sentences import split_sentences
from keras_lstm_dssm.text.vocabulary import Vocabulary
from keras_lstm_dssm.text.word_hashing import WordBatch, normalize_texts
from lstm_dssm_client.signatures import as_bytes


class DocumentBatch(NamedTuple):
    """Holds hashed documents."""

    # The distinct sentences. The field `text_index`, `[sentences]`, lists the
    # sentences of all documents in order, as indices of distinct sentences.
    sentences: WordBatch
    # Number of sentences of each document, at least 1, int32 `[documents]`.
    lengths: tf.Tensor

    @property
    def document(self) -> tf.Tensor:
        """Index of each sentence's document, int32 `[sentences]`, ascending."""
        return tf.repeat(tf.range(tf.size(self.lengths)), self.lengths)


class HashedDocuments(NamedTuple):
    """Holds a hashed batch of training examples."""

    documents: DocumentBatch
    salient: tf.Tensor  # bool `[sentences]`, true for key sentences
    key_words: tf.Tensor  # int32 `[words]`, indices in the key vocabulary
    key_word_document: tf.Tensor  # int32 `[words]`, index of the document


class DocumentHasher(Hasher):
    """Hashes batches of documents for a `KeyVec`."""

    hashed = HashedDocuments

    def __init__(
        self,
        words: WordVectors,
        key_words: Vocabulary,
        max_sentences: int | None,
    ) -> None:
        self.words = words
        self.key_words = key_words
        self.max_sentences = max_sentences

    def __call__(
        self,
        documents: tf.RaggedTensor,
        salient: tf.RaggedTensor,
        key_words: tf.RaggedTensor,
    ) -> HashedDocuments:
        """Hashes the documents of a batch and looks up their key words.

        `documents` has strings, and `salient` has bools; the shape of both is
        `[batch, (sentences)]`. `key_words` has strings `[batch, (words)]`.
        """
        lengths, flag_counts = documents.row_lengths(), salient.row_lengths()
        row_check = check_rows(
            documents=lengths,
            salient=flag_counts,
            key_words=key_words.row_lengths(),
        )
        with tf.control_dependencies([row_check]):
            equal = tf.reduce_all(tf.equal(lengths, flag_counts))
        message = "salient must have one value for each sentence"
        with tf.control_dependencies([tf.Assert(equal, [message, lengths])]):
            flags = self._first_values(salient, False)
        words = normalize_texts(
            key_words.flat_values, split=self.key_words.split
        )
        ids = self.key_words.ids(words)
        document = tf.cast(key_words.value_rowids(), tf.int32)
        return HashedDocuments(
            self.documents(documents),
            flags,
            tf.boolean_mask(ids, ids > 0) - 1,  # unknown words have the id 0
            tf.boolean_mask(document, ids > 0),
        )

    def documents(self, documents: tf.RaggedTensor) -> DocumentBatch:
        """Hashes documents; an empty document gets one empty sentence."""
        return DocumentBatch(
            self.words.distinct(self._first_values(documents, "")),
            self._cut_lengths(documents),
        )

    def _cut_lengths(self, rows: tf.RaggedTensor) -> tf.Tensor:
        lengths = tf.cast(rows.row_lengths(), tf.int32)
        if self.max_sentences is not None:
            lengths = tf.minimum(lengths, self.max_sentences)
        return tf.maximum(lengths, 1)

    def _first_values(self, rows: tf.RaggedTensor, empty: Any) -> tf.Tensor:
        """Cuts rows to `max_sentences` values; an empty row gives `empty`."""
        values, starts = rows.flat_values, tf.cast(rows.row_starts(), tf.int32)
        lengths = self._cut_lengths(rows)
        # The index in `values` is the index in the result plus `shift`.
        shift = starts - tf.cumsum(lengths, exclusive=True)
        index = tf.range(tf.reduce_sum(lengths)) + tf.repeat(shift, lengths)
        missing = tf.repeat(tf.equal(rows.row_lengths(), 0), lengths)
        return tf.gather(
            tf.concat([values, [empty]], axis=0),
            tf.where(missing, tf.size(values), index),
        )


def sentence_lists(documents: Any) -> list[list[bytes]]:
    """Makes lists of sentences (bytes); splits documents that are strings."""
    if isinstance(documents, str | bytes) or not isinstance(
        documents, Iterable
    ):
        raise InputError(
            f"expected a list of documents, got {documents!r:.60} "
            f"({type(documents).__name__}); write [document]"
        )
    lists = []
    for number, document in enumerate(documents):
        try:
            if isinstance(document, str | bytes):
                document = split_sentences(document)
            lists.append(as_bytes(document))
        except InputError as error:
            raise InputError(
                f"document {number} is neither a string nor a list of "
                f"sentences: {error}"
            ) from None
    return lists


def document_batches(
    x: Any, batch_size: int | None = None, shuffle_seed: int | None = None
) -> tf.data.Dataset:
    """Batches three lists; if `x` is a dataset, checks and returns `x`."""
    if isinstance(x, tf.data.Dataset):
        if not is_hashed(x.element_spec, HashedDocuments):
            _check_spec(x.element_spec)
        return x
    columns = _three_lists(x)
    rows = tf.data.Dataset.range(len(x[0]))
    if shuffle_seed is not None:
        rows = rows.shuffle(max(len(x[0]), 1), shuffle_seed)
    return rows.batch(batch_size or 32).map(
        lambda indices: tuple(tf.gather(column, indices) for column in columns)
    )


def sentence_batches(x: Any, batch_size: int | None = None) -> tf.data.Dataset:
    """Makes batches of documents without targets; returns a dataset as is."""
    if isinstance(x, tf.data.Dataset):
        return x
    documents = _ragged(sentence_lists(x), tf.string)
    dataset = tf.data.Dataset.from_tensor_slices(documents)
    return dataset.batch(batch_size or 32)


def _three_lists(x: Any) -> tuple[tf.RaggedTensor, ...]:
    check_three_lists(x, "(documents, salient, key_words)", "three lists")
    documents = sentence_lists(x[0])
    salient = [np.asarray(flags, bool).tolist() for flags in x[1]]
    key_words = [as_bytes(words) for words in x[2]]
    if not len(documents) == len(salient) == len(key_words):
        raise InputError(
            f"found {len(documents)} documents, {len(salient)} lists of "
            f"salient sentences and {len(key_words)} lists of key words: give "
            "equal numbers"
        )
    for number, (sentences, flags) in enumerate(
        zip(documents, salient, strict=True)
    ):
        if len(sentences) != len(flags):
            raise InputError(
                f"document {number} has {len(sentences)} sentences and "
                f"{len(flags)} values in salient: give one value for each"
                " sentence"
            )
    return (
        _ragged(documents, tf.string),
        _ragged(salient, tf.bool),
        _ragged(key_words, tf.string),
    )


def _ragged(rows: list[list[Any]], dtype: tf.DType) -> tf.RaggedTensor:
    values = [value for row in rows for value in row]
    return tf.RaggedTensor.from_row_lengths(
        tf.constant(values, dtype, [len(values)]),
        tf.constant([len(row) for row in rows], tf.int64, [len(rows)]),
    )


def _check_spec(spec: Any) -> None:
    dtypes = tf.string, tf.bool, tf.string
    if (
        not isinstance(spec, tuple)
        or len(spec) != 3
        or not all(
            isinstance(part, tf.RaggedTensorSpec)
            and part.dtype == dtype
            and part.ragged_rank == 1
            for part, dtype in zip(spec, dtypes, strict=True)
        )
    ):
        raise InputError(
            "expected a dataset of (documents, salient, key_words) batches, "
            "ragged [batch, None] with strings, booleans and strings; got "
            f"{spec}; make batches with .ragged_batch(32)"
        )
