import gzip

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.data import (
    ClickLog,
    Pair,
    evaluation_batches,
    training_batches,
)


@pytest.fixture
def log(tmp_path) -> ClickLog:
    """50 and 33 pairs, the second file compressed, with CRLF and a BOM."""
    (tmp_path / "a.tsv").write_text(
        "".join(f"q{i}\ttitle {i}\n" for i in range(50))
    )
    (tmp_path / "b.tsv.gz").write_bytes(
        gzip.compress(
            b"\xef\xbb\xbf"
            + b"".join(b" r%d \t\xc3\xbf %d\r\n" % (i, i) for i in range(33))
        )
    )
    return ClickLog([tmp_path / "a.tsv", tmp_path / "b.tsv.gz"])


def read(dataset: tf.data.Dataset) -> list[list[tuple[bytes, bytes]]]:
    return [
        list(zip(*map(np.ndarray.tolist, batch), strict=True))
        for batch in dataset.as_numpy_iterator()
    ]


def batches(log: ClickLog, **options) -> list[list[tuple[bytes, bytes]]]:
    settings = dict(epochs=3, seed=5, shuffle_buffer=20) | options
    return read(training_batches(log, 10, **settings))


EXPECTED = {(b"q%d" % i, b"title %d" % i) for i in range(50)} | {
    (b"r%d" % i, b"\xc3\xbf %d" % i) for i in range(33)
}


def test_each_epoch_holds_each_pair_once_and_its_remainder(log):
    whole = batches(log)
    assert [len(batch) for batch in whole] == ([10] * 8 + [3]) * 3
    epochs = [sum(whole[at : at + 9], []) for at in (0, 9, 18)]
    for epoch in epochs:
        assert set(epoch) == EXPECTED
    assert epochs[0] != epochs[1] != epochs[2]
    # Files are mixed.
    assert len({query[:1] for query, _ in whole[0]}) == 2


def test_order_is_a_function_of_seed_and_epoch(log):
    tf.random.set_seed(1)
    dataset = training_batches(log, 10, epochs=3, seed=5, shuffle_buffer=20)
    first = read(dataset)
    assert read(dataset) == first
    tf.random.set_seed(2)
    assert batches(log) == first
    assert batches(log, epochs=1) == first[:9]
    assert batches(log, seed=6) != first


@pytest.mark.parametrize("update", [1, 8, 9, 13, 26, 27])
def test_a_resumed_run_sees_what_is_left(log, update):
    assert batches(log, first_update=update) == batches(log)[update:]


def test_cardinality_is_known(log):
    dataset = training_batches(log, 10, epochs=3, seed=1, first_update=4)
    assert dataset.cardinality() == 23
    assert dataset.element_spec == (tf.TensorSpec([None], tf.string),) * 2
    done = training_batches(log, 10, epochs=3, seed=1, first_update=40)
    assert done.cardinality() == 0 and read(done) == []


def test_evaluation_keeps_the_order(log):
    dataset = evaluation_batches(log, 40)
    assert dataset.cardinality() == 3
    first, second, last = read(dataset)
    assert first[0] == (b"q0", b"title 0")
    assert second[10] == (b"r0", b"\xc3\xbf 0")
    assert last == [(b"r%d" % i, b"\xc3\xbf %d" % i) for i in (30, 31, 32)]


def test_evaluation_of_pairs():
    pairs = [Pair("a", "b"), Pair("\u00e9", ""), Pair("c", "d")]
    assert read(evaluation_batches(iter(pairs), 2)) == [
        [(b"a", b"b"), ("\u00e9".encode(), b"")],
        [(b"c", b"d")],
    ]
    assert read(evaluation_batches([], 2)) == []


def test_blank_lines_at_the_end_of_a_file(log, tmp_path):
    whole = batches(log), read(evaluation_batches(log, 40))
    with open(tmp_path / "a.tsv", "a") as plain:
        plain.write("\n \t\r\n\n")
    with gzip.open(tmp_path / "b.tsv.gz", "ab") as compressed:
        compressed.write(b"\r\n\n")
    longer = ClickLog(log.paths)
    assert longer.counts() == (50, 33) and len(list(longer)) == 83
    assert (batches(longer), read(evaluation_batches(longer, 40))) == whole
