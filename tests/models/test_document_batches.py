"""Batches of documents: hashed, bounded and checked."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.layers import VocabularyVectors
from keras_lstm_dssm.models.document_batch import (
    DocumentHasher,
    HashedDocuments,
    document_batches,
    sentence_lists,
)
from keras_lstm_dssm.models.text_model import is_hashed
from tests.models.small_keyvec import DOCUMENTS, EXAMPLES, SALIENT


def small_hasher(max_sentences: int | None) -> DocumentHasher:
    words = VocabularyVectors(["hat", "red"], 2)
    return DocumentHasher(words, words.lookup, max_sentences)


def ragged(rows: list[list[Any]], dtype: tf.DType) -> tf.RaggedTensor:
    return tf.ragged.constant(rows, dtype, 1)


def test_each_distinct_sentence_occurs_once():
    batch = small_hasher(None)(
        ragged([["Red hat.", "Old", "red  HAT"], [], ["old"]], tf.string),
        ragged([[True, False, True], [], [True]], tf.bool),
        ragged([["Red", "blue", "HAT"], ["red"], []], tf.string),
    )
    sentences = batch.documents.sentences
    assert sentences.lengths.numpy().tolist() == [2, 1, 1]
    rows = sentences.text_index.numpy().tolist()
    assert rows[0] == rows[2] and rows[1] == rows[4] and len(set(rows)) == 3
    assert batch.documents.lengths.numpy().tolist() == [3, 1, 1]
    assert batch.documents.document.numpy().tolist() == [0, 0, 0, 1, 2]
    assert batch.salient.numpy().tolist() == [True, False, True, False, True]
    assert batch.key_words.numpy().tolist() == [1, 0, 1]  # blue is unknown
    assert batch.key_word_document.numpy().tolist() == [0, 0, 1]


def test_the_first_sentences_are_read():
    batch = small_hasher(2)(
        ragged([["a", "b", "c"], ["d"]], tf.string),
        ragged([[False, True, True], [True]], tf.bool),
        ragged([[], []], tf.string),
    )
    assert batch.documents.lengths.numpy().tolist() == [2, 1]
    assert batch.salient.numpy().tolist() == [False, True, True]


def test_a_batch_that_does_not_fit_is_refused():
    with pytest.raises(tf.errors.InvalidArgumentError, match="one value for"):
        small_hasher(None)(
            ragged([["a", "b"]], tf.string),
            ragged([[True]], tf.bool),
            ragged([[]], tf.string),
        )
    with pytest.raises(
        InputError, match="found 1 documents, 2 salient, 3 key_words$"
    ):
        small_hasher(None)(
            ragged([["a"]], tf.string),
            ragged([[True], [False]], tf.bool),
            ragged([[], ["hat"], ["red"]], tf.string),
        )


def test_lists_are_shuffled_anew_in_each_pass():
    documents = [[str(number)] for number in range(20)]
    x = (documents, [[True]] * 20, [[]] * 20)

    def passes(dataset: tf.data.Dataset) -> list[list[bytes]]:
        return [
            [d for batch in dataset for d in batch[0].flat_values.numpy()]
            for _ in range(2)
        ]

    expected = [str(number).encode() for number in range(20)]
    assert passes(document_batches(x, 3)) == [expected] * 2
    first, second = passes(document_batches(x, 3, shuffle_seed=1))
    assert sorted(first) == sorted(second) == sorted(expected)
    assert first != second != expected != first
    assert [b[0].shape[0] for b in document_batches(x)] == [20]


def test_datasets_pass_through():
    batches = document_batches(EXAMPLES, 2)
    assert document_batches(batches) is batches
    hashed = small_hasher(None).dataset(batches)
    assert is_hashed(hashed.element_spec, HashedDocuments)
    assert document_batches(hashed) is hashed
    assert small_hasher(None).dataset(hashed) is hashed


def test_documents_become_lists_of_sentences():
    documents = ["Red. Blue.", b"One", ["A b. C", b"d"], [], ""]
    assert sentence_lists(iter(documents)) == [
        [b"Red.", b"Blue."], [b"One"], [b"A b. C", b"d"], [], [b""],
    ]  # fmt: skip


def test_wrong_input_is_explained():
    flat = tf.data.Dataset.from_tensor_slices((["a"], [True], ["b"])).batch(1)
    for x, message in (
        (EXAMPLES[:2], "three lists in a tuple; got tuple of 2 parts"),
        (None, "got NoneType of no parts"),
        ((DOCUMENTS, SALIENT, [[]]), "4 documents, 4 lists of salient"),
        (
            (DOCUMENTS, np.roll(np.array(SALIENT, object), 1), EXAMPLES[2]),
            "document 0 has 5 sentences and 7 values in salient",
        ),
        (flat, r"with .ragged_batch\(32\)"),
    ):
        with pytest.raises(InputError, match=message):
            document_batches(x)
