"""The order in which clicks and triples are streamed, also to a resumed run."""

import gzip
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.data import (
    ClickLog,
    Pair,
    Triples,
    click_log,
    evaluation_batches,
    training_batches,
)
from keras_lstm_dssm.data import triples as triples_module
from keras_lstm_dssm.data.click_log import LineBlocks
from keras_lstm_dssm.errors import InputError
from tests.data.test_triples import LISTS
from tests.limits import largest_file

Batches = list[list[tuple[bytes, ...]]]
EXPECTED = {(b"q%d" % i, b"title %d" % i) for i in range(50)} | {
    (b"r%d" % i, b"\xc3\xbf %d" % i) for i in range(33)
}


@pytest.fixture
def log(tmp_path) -> ClickLog:
    """50 and 33 pairs, the second file compressed, with CRLF and a BOM."""
    write(tmp_path / "a.tsv", (f"q{i}\ttitle {i}\n" for i in range(50)))
    zipped = (f" r{i} \t\u00ff {i}\r\n" for i in range(33))
    write(tmp_path / "b.tsv.gz", ["\ufeff", *zipped])
    return ClickLog([tmp_path / "a.tsv", tmp_path / "b.tsv.gz"])


def write(path: Path, lines: Iterator[str] | list[str]) -> None:
    data = "".join(lines).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def read(dataset: tf.data.Dataset) -> Batches:
    return [
        list(zip(*map(np.ndarray.tolist, batch), strict=True))
        for batch in dataset.as_numpy_iterator()
    ]


def batches(log: ClickLog, **options) -> Batches:
    settings = dict(epochs=3, seed=5, shuffle_buffer=20) | options
    return read(training_batches(log, 10, **settings))


class Source(NamedTuple):
    """What is streamed in an epoch, and the sizes of its batches."""

    stream: Callable[..., tf.data.Dataset]
    expected: Counter
    sizes: list[int]

    def read(self, **options) -> Batches:
        dataset = self.stream(**{"epochs": 3, "seed": 5, **options})
        found = read(dataset)
        assert int(dataset.cardinality()) == len(found)
        return found


TRIPLES = [
    *((b"q1", p, n) for p in (b"a", b"b") for n in (b"c", b"d", b"e")),
    *[(b"q3", b"a", b"b"), (b"q5", b"c", b"a"), (b"q5", b"c", b"a")],
]


@pytest.fixture(params=["clicks", "clicks among bad lines", "triples"])
def source(request, log, tmp_path, monkeypatch) -> Source:
    if request.param == "triples":
        monkeypatch.setattr(triples_module, "_ROWS_PER_ELEMENT", 8)
        lists = Triples(LISTS)
        return Source(
            lambda **o: lists.batches(4, **o), Counter(TRIPLES), [4, 4, 1]
        )
    if "bad" in request.param:
        text = (tmp_path / "a.tsv").read_text().splitlines(keepends=True)
        write(tmp_path / "a.tsv", (x + "no tab\n" for x in text))
        log = ClickLog(log.paths, max_bad_lines=50)
    return Source(
        lambda **o: training_batches(log, 10, shuffle_buffer=20, **o),
        Counter(EXPECTED), [10] * 8 + [3],
    )  # fmt: skip


def test_each_epoch_holds_each_example_once_and_its_remainder(source):
    whole = source.read()
    assert [len(batch) for batch in whole] == source.sizes * 3
    steps = len(source.sizes)
    epochs = [sum(whole[n * steps : (n + 1) * steps], []) for n in range(3)]
    assert [Counter(epoch) for epoch in epochs] == [source.expected] * 3
    assert epochs[0] != epochs[1] != epochs[2]


def test_order_is_a_function_of_seed_and_epoch(source):
    tf.random.set_seed(1)
    dataset = source.stream(epochs=3, seed=5)
    first = read(dataset)
    assert read(dataset) == first
    tf.random.set_seed(2)
    assert source.read() == first
    assert source.read(epochs=1) == first[: len(source.sizes)]
    assert source.read(seed=6) != first


def test_a_resumed_run_sees_what_is_left(source):
    whole = source.read()
    for step in (1, len(whole) // 2, len(source.sizes), len(whole) - 1):
        assert source.read(first_step=step) == whole[step:]
    for step in (len(whole), 40):
        assert source.read(first_step=step) == []


def test_epochs_of_fewer_steps(log):
    """Workers of unequal parts of a log take equal steps."""
    short = batches(log, steps_per_epoch=6)
    whole = batches(log)
    assert short == [
        whole[9 * epoch + n] for epoch in (0, 1, 2) for n in range(6)
    ]
    for first in (0, 5, 6, 13):
        rest = batches(log, steps_per_epoch=6, first_step=first)
        assert rest == short[first:]
    with pytest.raises(InputError, match="is 10: expected at most 9, the bat"):
        batches(log, steps_per_epoch=10)


def test_evaluation_keeps_the_order(log):
    first, second, last = read(evaluation_batches(log, 40))
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


@pytest.mark.parametrize("name", ["clicks.tsv", "clicks.tsv.gz"])
def test_clicks_and_synthetic_pairs_are_mixed_in_all_of_an_epoch(
    tmp_path, name
):
    """400 k clicks and 100 k synthetic pairs in small: a buffer of 1,000."""
    write(tmp_path / name, (f"q{i}\tclick {i}\n" for i in range(4000)))
    write(tmp_path / "pairs.tsv", (f"s{i}\tpair {i}\n" for i in range(1000)))
    log = ClickLog([tmp_path / name, tmp_path / "pairs.tsv"])
    dataset = training_batches(log, 50, epochs=1, seed=0, shuffle_buffer=1000)
    queries = [q for queries, _ in dataset.as_numpy_iterator() for q in queries]
    assert len(set(queries)) == len(queries) == 5000
    tenths = np.reshape([q.startswith(b"s") for q in queries], [10, 500])
    shares = tenths.mean(axis=1)
    assert 0.1 < shares.min() and shares.max() < 0.3, shares


@pytest.mark.parametrize("name", ["clicks.tsv", "clicks.tsv.gz"])
def test_a_sorted_log_gives_batches_from_across_the_file(tmp_path, name):
    """A tenth of the log in the buffer; with the last batch as the first."""
    write(tmp_path / name, (f"{i}\ttitle\n" for i in range(10_000)))
    dataset = training_batches(
        ClickLog(tmp_path / name), 100, epochs=1, seed=0, shuffle_buffer=1000
    )
    for queries, _ in dataset.as_numpy_iterator():
        lines = np.sort(queries.astype(int))
        # 100 draws of 10,000: no gap of more than a seventh of the log.
        assert np.diff([0, *lines, 10_000]).max() < 1500
        # Of the 8 lines of a block, few are in one batch of the buffer's 10.
        assert (np.diff(lines) == 1).mean() < 0.2


def test_a_resumed_run_reads_only_what_is_left(log, monkeypatch):
    whole = batches(log)
    read_blocks = []
    read_lines = LineBlocks.read

    def read(self, blocks):
        read_blocks.append(len(blocks))
        return read_lines(self, blocks)

    monkeypatch.setattr(LineBlocks, "read", read)
    assert batches(log, epochs=1, first_step=8) == whole[8:9]
    assert sum(read_blocks) < len(log.blocks()) / 2


def test_blocks_in_any_order_are_the_lines_of_the_file(log, monkeypatch):
    monkeypatch.setattr(click_log, "_MOST_BLOCKS", 5)  # larger blocks
    blocks = ClickLog(log.paths).blocks()
    assert blocks.block_lines == 17 and len(blocks) == 3 + 2
    lines = blocks.read(np.arange(5))
    assert [line.split(b"\t")[0].strip() for line in lines] == [
        query.encode() for query, _ in log
    ]
    for numbers in ([0], [2], [3], [0, 2, 4], [1, 2, 3]):
        starts = [0, 17, 34, 50, 67, 83]
        expected = [
            line for n in numbers for line in lines[starts[n] : starts[n + 1]]
        ]
        assert blocks.read(np.array(numbers)) == expected
        assert blocks.clicks[numbers].sum() == len(expected)


@pytest.mark.parametrize("buffer", [1, 7, 10**9])
def test_any_buffer(log, buffer):
    assert {*sum(batches(log, epochs=1, shuffle_buffer=buffer), [])} == EXPECTED
    with pytest.raises(
        InputError, match="shuffle_buffer is 0: expected a whole number of 1"
    ):
        batches(log, shuffle_buffer=0)


def test_a_file_that_was_cut_meanwhile(log, tmp_path):
    dataset = training_batches(log, 10, epochs=1, seed=0)
    (tmp_path / "a.tsv").write_text("q\ttitle\n")
    with pytest.raises(tf.errors.OpError, match="a.tsv: found 1 lines from"):
        list(dataset)


def test_no_room_to_decompress(log, tmp_path):
    (tmp_path / "c.tsv.gz").write_bytes(gzip.compress(b"a\tb\n" * 9000))
    zipped = ClickLog(tmp_path / "c.tsv.gz")
    with (
        largest_file(1000),
        pytest.raises(InputError, match="found no room to decompress it in"),
    ):
        zipped.blocks()
