"""Batches of triples, and their hashing."""

import pytest
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.models.pair_scorer import TripleHasher, triple_batches
from tests.models.small_matchers import HashedWords

TRIPLES = tuple([f"{side}{n}" for n in range(20)] for side in "qpn")


def rows(batches: tf.data.Dataset) -> list[tuple[str, ...]]:
    return [
        row
        for batch in batches
        for row in zip(
            *(part.numpy().astype(str).tolist() for part in batch), strict=True
        )
    ]


def test_lists_are_batched_and_shuffled_by_seed():
    in_order = list(zip(*TRIPLES, strict=True))
    batches = triple_batches(TRIPLES, batch_size=8)
    assert [len(batch[0]) for batch in batches] == [8, 8, 4]
    assert rows(batches) == in_order
    assert len(list(triple_batches(TRIPLES))) == 1  # 128 by default
    shuffled = triple_batches(TRIPLES, 8, shuffle_seed=1)
    first, second = rows(shuffled), rows(shuffled)
    assert sorted(first) == sorted(second) == sorted(in_order)
    assert first != second and first != in_order
    assert rows(triple_batches(TRIPLES, 8, shuffle_seed=1)) == first
    assert rows(triple_batches(TRIPLES, 8, shuffle_seed=2)) != first


def test_hashing_keeps_each_distinct_text_once():
    hasher = TripleHasher(HashedWords())
    texts = (["a b", "c", "A  B"], ["d", "e f", "d"], ["e f", "d", "g"])
    dataset = hasher.dataset(triple_batches(texts))
    ((triples,),) = dataset
    assert triples.query.text_index.numpy().tolist() == [0, 1, 0]
    # The longest text is first.
    assert triples.document.lengths.numpy().tolist() == [2, 1, 1]
    assert triples.document.text_index.numpy().tolist() == [1, 0, 1, 0, 1, 2]
    assert hasher.dataset(dataset) is dataset


def test_parts_of_a_batch_with_different_numbers_of_rows():
    """Else 24 documents would be read as 12 positives and 12 negatives."""
    hasher = TripleHasher(HashedWords())
    batch = tuple(tf.fill([rows], "bolt") for rows in (12, 4, 20))
    found = "of a batch: found "
    with pytest.raises(
        InputError, match=found + "12 queries, 4 positives, 20 negatives$"
    ):
        hasher(*batch)
    data = tf.data.Dataset.from_generator(
        lambda: [batch],
        output_signature=(tf.TensorSpec([None], tf.string),) * 3,
    )
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=found + r"queries, positives, negatives:\] \[12 4 20\]",
    ):
        list(hasher.dataset(data))
