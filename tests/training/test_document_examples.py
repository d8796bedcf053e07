"""Batches of documents with their targets, and where a run resumes."""

from typing import Any

import pytest
import tensorflow as tf

from keras_lstm_dssm.data import Document
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.training.document_examples import DocumentExamples
from keras_lstm_dssm.training.document_targets import DocumentTargets, Target
from keras_lstm_dssm.training.salience import SalienceCounts


def made(count: int) -> DocumentExamples:
    """Document n has n % 7 + 1 sentences, and n % 3 key words."""
    documents, targets = [], {}
    for n in range(count):
        sentences = [f"d{n} s{row} \u00e9" for row in range(n % 7 + 1)]
        documents.append(Document(f"d{n}", "", sentences, []))
        targets[f"d{n}"] = Target(
            len(sentences), [n % len(sentences)], [f"w{n}", "word"][: n % 3]
        )
    counts = SalienceCounts(0.5)
    return DocumentExamples(iter(documents), DocumentTargets(targets, counts))


def lists(dataset: tf.data.Dataset) -> list[list[Any]]:
    return [[part.to_list() for part in batch] for batch in dataset]


def test_an_example() -> None:
    examples = made(5)
    (first, second) = examples.in_order(3)
    documents, salient, key_words = first
    assert documents.dtype == key_words.dtype == tf.string
    assert salient.dtype == tf.bool and len(examples) == 5
    assert documents.to_list()[1] == [
        "d1 s0 \u00e9".encode(), "d1 s1 \u00e9".encode()
    ]  # fmt: skip
    assert salient.to_list() == [[True], [False, True], [False, False, True]]
    assert key_words.to_list() == [[], [b"w1"], [b"w2", b"word"]]
    assert [part.shape[0] for part in second] == [2, 2, 2]
    assert examples.in_order(3).cardinality() == 2


def test_without_any_key_word() -> None:
    (batch,) = made(1).in_order()
    assert batch[2].to_list() == [[]] and batch[2].dtype == tf.string


def test_each_epoch_has_every_document_once_in_another_order() -> None:
    examples = made(103)
    per_epoch = 26
    both = lists(examples.batches(4, epochs=2, seed=1))
    assert len(both) == 2 * per_epoch
    orders = []
    for epoch in (both[:per_epoch], both[per_epoch:]):
        ids = [
            document[0].split()[0] for batch in epoch for document in batch[0]
        ]
        assert sorted(ids) == sorted(f"d{n}".encode() for n in range(103))
        orders.append(ids)
        sizes = [len(batch[0]) for batch in epoch]
        assert sorted(sizes)[0] == 3 and sizes.count(4) == per_epoch - 1
        # Documents of similar length are together.
        spans = [
            max(map(len, documents)) - min(map(len, documents))
            for documents, _, _ in epoch
        ]
        assert sum(spans) / len(spans) < 1
        # The batches are not in the order of their length.
        lengths = [len(documents[0]) for documents, _, _ in epoch]
        assert lengths != sorted(lengths)
    assert orders[0] != orders[1]
    assert lists(examples.batches(4, epochs=2, seed=1)) == both
    assert lists(examples.batches(4, epochs=1, seed=2)) != both[:per_epoch]


@pytest.mark.parametrize("step", [1, 9, 10, 15, 20])
def test_a_run_resumes_at_any_training_step(step: int) -> None:
    examples = made(37)
    both = lists(examples.batches(4, epochs=2, seed=3))
    rest = examples.batches(4, epochs=2, seed=3, first_step=step)
    assert rest.cardinality() == 20 - step
    assert lists(rest) == both[step:]


def test_wrong_arguments() -> None:
    for make in (
        lambda: made(3).batches(0, epochs=1, seed=0),
        lambda: made(3).in_order(0),
    ):
        with pytest.raises(InputError, match="batch_size must be 1 or more"):
            make()
    with pytest.raises(InputError, match="found no documents to train on"):
        made(0)
