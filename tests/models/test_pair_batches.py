import pytest
import tensorflow as tf

from keras_lstm_dssm import InputError
from keras_lstm_dssm.models.pairs import pair_batches

QUERIES, DOCUMENTS = list("abcde"), list("ABCDE")


def pairs(dataset: tf.data.Dataset) -> list[tuple[bytes, bytes]]:
    flat = dataset.unbatch().as_numpy_iterator()
    return [(query, document) for query, document in flat]


def test_lists_become_batches() -> None:
    dataset = pair_batches(QUERIES, DOCUMENTS, batch_size=2)
    assert [len(query) for query, _ in dataset] == [2, 2, 1]
    assert dataset.cardinality() == 3
    expected = [(q.encode(), q.upper().encode()) for q in QUERIES]
    assert pairs(dataset) == expected


def test_shuffles_anew_each_epoch_and_by_seed() -> None:
    queries = [str(place) for place in range(40)]
    dataset = pair_batches(queries, queries, shuffle_seed=1)
    first, second = pairs(dataset), pairs(dataset)
    assert sorted(first) == sorted(second)
    assert first != second
    assert all(query == document for query, document in first)
    again = pair_batches(queries, queries, shuffle_seed=1)
    assert pairs(again) == first


def test_a_dataset_stays_as_it_is() -> None:
    dataset = tf.data.Dataset.from_tensors((QUERIES, DOCUMENTS))
    assert pair_batches(dataset) is dataset


def test_wrong_data() -> None:
    with pytest.raises(InputError, match="5 queries but 4 documents; give one"):
        pair_batches(QUERIES, DOCUMENTS[:4])
    with pytest.raises(InputError, match="a dataset of .query, document."):
        pair_batches(tf.data.Dataset.from_tensors(QUERIES))
