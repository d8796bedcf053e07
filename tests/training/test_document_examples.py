"""Batches of documents with their targets, and where a run resumes."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.data import Document
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.training.document_targets import (
    DocumentExamples,
    DocumentTargets,
    Target,
)
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


def test_an_example():
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


def test_without_any_key_word():
    (batch,) = made(1).in_order()
    assert batch[2].to_list() == [[]] and batch[2].dtype == tf.string


def test_each_epoch_has_every_document_once_in_another_order():
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


@pytest.mark.parametrize("excerpt", [0, 3])
@pytest.mark.parametrize("step", [1, 9, 10, 15, 20])
def test_a_run_resumes_at_any_training_step(step, excerpt):
    examples = made(37)
    options = {"epochs": 2, "seed": 3, "excerpt": excerpt}
    both = lists(examples.batches(4, **options))
    rest = examples.batches(4, first_step=step, **options)
    assert rest.cardinality() == 20 - step
    assert lists(rest) == both[step:]


def test_excerpts():
    """Each epoch draws other sentences, and keeps their order and marks."""
    examples = made(700)  # a hundred documents of each length from 1 to 7
    whole: dict[bytes, tuple[list[bytes], list[bool], list[bytes]]] = {}
    for batch in lists(examples.in_order(100)):
        for example in zip(*batch, strict=True):
            whole[example[0][0].split()[0]] = example
    epochs = []
    for epoch in range(2):
        batches = examples.batches(
            50, epochs=epoch + 1, seed=0, first_step=14 * epoch, excerpt=4
        )
        drawn = {}
        for batch in lists(batches):
            for sentences, salient, key_words in zip(*batch, strict=True):
                name = sentences[0].split()[0]
                everything, marks, words = whole[name]
                places = [everything.index(one) for one in sentences]
                assert places == sorted(set(places))
                assert salient == [marks[place] for place in places]
                assert key_words == words
                drawn[name] = places
        assert drawn.keys() == whole.keys()
        epochs.append(drawn)
    assert epochs[0] != epochs[1]
    longest = [
        places
        for drawn in epochs
        for name, places in drawn.items()
        if len(whole[name][0]) >= 4
    ]
    # floor(5 ** u), u uniform: the number is n with log_5((n + 1) / n).
    counts = np.bincount([len(places) for places in longest])
    expected = np.log([2, 3 / 2, 4 / 3, 5 / 4]) / np.log(5)
    np.testing.assert_allclose(counts[1:] / len(longest), expected, atol=0.05)
    assert {place for places in longest for place in places} == set(range(7))


def test_wrong_arguments():
    for make in (
        lambda: made(3).batches(0, epochs=1, seed=0),
        lambda: made(3).in_order(0),
    ):
        with pytest.raises(InputError, match="batch_size must be 1 or more"):
            make()
    with pytest.raises(InputError, match="excerpt must be 0 or more, not -1"):
        made(3).batches(epochs=1, seed=0, excerpt=-1)
    with pytest.raises(InputError, match="found no documents to train on"):
        made(0)
