"""`HashedUniform`, and the storage of the rows that a training has changed."""

import random

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm import tables
from keras_lstm_dssm.layers import TrigramEmbedding
from keras_lstm_dssm.layers.letter_trigrams import copy_weights


def lowbias32(x: int) -> int:
    """The hash in Python's own integers."""
    for shift, factor in ((16, 0x21F0AAAD), (15, 0x735A2D97), (15, 1)):
        x = (x ^ x >> shift) * factor & 0xFFFFFFFF
    return x


@pytest.mark.parametrize("seed", [0, 1, 2**32 - 1])
def test_a_number_of_the_start_is_a_hash_of_its_place(seed):
    start = tables.HashedUniform(0.05, seed)
    places = [(0, 0), (0, 6), (7, 0), (50_652, 6), (2**31 - 1, 3)]
    for row, column in places:
        hashed = lowbias32(
            lowbias32(row ^ lowbias32(seed)) ^ lowbias32(column + 1)
        )
        expected = np.float32((hashed >> 8) - 2**23) * np.float32(0.05 / 2**23)
        assert start.rows([row], 7)[0, column] == expected


def test_a_graph_gives_the_same_bits_for_any_rows():
    starts, widths = (
        [tables.HashedUniform(seed=3), tables.HashedUniform(0.1, 4)],
        [96, 7],
    )
    numbers = np.random.default_rng(0).integers(0, 2**31 - 1, 500, np.int32)
    graph = tf.function(
        lambda rows: tables.graph_rows(rows, starts, widths), autograph=False
    )
    for start, width, rows in zip(starts, widths, graph(numbers), strict=True):
        np.testing.assert_array_equal(rows, start.rows(numbers, width))
    assert [rows.shape for rows in graph(numbers[:0])] == [(0, 96), (0, 7)]


def test_the_start_is_uniform_and_independent_of_its_neighbours():
    """By chi-squared of 100 bins, of rows, columns and of another seed."""
    table = tables.HashedUniform(1.0, 5).rows(np.arange(2000), 384)
    assert -1 <= table.min() < table.max() < 1
    counts, _ = np.histogram(table, 100, (-1, 1))
    chi_squared = ((counts - table.size / 100) ** 2 / (table.size / 100)).sum()
    assert 99 - 4 * 14.1 < chi_squared < 99 + 4 * 14.1
    other = tables.HashedUniform(1.0, 6).rows(np.arange(2000), 384)
    pairs = [
        (table[1:], table[:-1]), (table[:, 1:], table[:, :-1]), (table, other),
        (table**2, other**2),
    ]  # fmt: skip
    for one, another in pairs:
        correlation = np.corrcoef(one.ravel(), another.ravel())[0, 1]
        assert abs(correlation) < 4 / np.sqrt(one.size)
    # The product of two rows is that of independent ones.
    products = table[:500] @ table[:500].T
    np.fill_diagonal(products, 0)
    assert np.abs(products).max() < 5.5 * np.sqrt(384) / 3


def test_the_seed_is_pythons_own_and_the_config_keeps_it():
    random.seed(1)
    expected = random.randint(1, 10**9)
    random.seed(1)
    start = tables.HashedUniform()
    assert start.seed == expected
    again = keras.initializers.deserialize(keras.initializers.serialize(start))
    assert isinstance(again, tables.HashedUniform)
    assert again.get_config() == {"limit": 0.05, "seed": expected}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_only_changed_rows_are_stored(dtype):
    layer = TrigramEmbedding(8, 1000, dtype=dtype)
    table = layer.table.numpy()
    table[[3, 998]] += 1
    table[500, 2] = np.nan
    layer.set_weights([table])
    store = {}
    layer.save_own_variables(store)
    assert sorted(store) == ["0_rows", "0_values", "start"]
    assert store["0_rows"].tolist() == [3, 500, 998]
    assert store["0_values"].dtype == dtype

    other = TrigramEmbedding(8, 1000, dtype=dtype)
    assert (other.table.numpy() != table).mean() > 0.9
    other.load_own_variables(store)
    np.testing.assert_array_equal(other.table.numpy(), table)
    np.testing.assert_array_equal(other.changed_rows(), [3, 500, 998])


def test_a_table_of_which_most_rows_differ_is_stored_whole():
    """Such as a table that starts in another way."""
    layer = TrigramEmbedding(2, 10)
    dense = np.arange(20, dtype=np.float32).reshape(10, 2)
    layer.load_own_variables({"0": dense})
    np.testing.assert_array_equal(layer.table.numpy(), dense)
    for each in (layer, TrigramEmbedding(2, 10, initializer="ones")):
        store = {}
        each.save_own_variables(store)
        np.testing.assert_array_equal(store.pop("0"), each.table.numpy())
        assert not store
        assert each.changed_rows().tolist() == list(range(10))


def test_copied_weights_have_their_start():
    source, target = TrigramEmbedding(4, 1000), TrigramEmbedding(4, 1000)
    copy_weights(source, target)
    np.testing.assert_array_equal(source.table.numpy(), target.table.numpy())
    assert len(target.changed_rows()) == 0


def test_a_row_differs_from_its_start_in_any_bit():
    table = np.zeros((4, 2), np.float32)
    table[1, 1] = -0.0
    table[3, 0] = np.nan
    assert tables.changed_rows(table, 0).tolist() == [1, 3]
    assert tables.changed_rows(table, table.copy()).tolist() == []


@pytest.mark.parametrize("start", [0, 7])
def test_counts_of_one_number_are_stored_by_it(start):
    counts = np.full(10, start, np.int32)
    counts[4] += 3
    store = {}
    assert tables.write_table(store, "2", counts, start)
    assert ("2_start" in store) == bool(start)
    np.testing.assert_array_equal(tables.read_table(store, "2", (10,)), counts)


@pytest.mark.parametrize(("rows", "values", "message"), [
    ([0, 10], np.ones((2, 3)), "with indices up to 10"),
    ([-1, 2], np.ones((2, 3)), "with indices up to 2"),
    ([0], np.ones((2, 3)), "expected rows of a table"),
    ([0], np.ones((1, 4)), r"found rows of shape \(4,\)"),
])  # fmt: skip
def test_rows_of_another_table(rows, values, message):
    store = {"0_rows": np.array(rows), "0_values": values}
    with pytest.raises(ValueError, match=message):
        tables.read_table(store, "0", (10, 3))
