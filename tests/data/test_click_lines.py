"""Bad lines: each kind is found, counted, and skipped alike everywhere."""

import gzip
import pathlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keras_lstm_dssm.data import ClickLog, evaluation_batches, training_batches
from keras_lstm_dssm.data.split import split_log
from keras_lstm_dssm.errors import InputError

BAD = {
    b"no tab here": "no tab",
    b"": "no tab",
    b"three\tcolumns\tare too many": "2 tabs",
    b"\ttitle": "an empty query",
    b"query\t \r": "an empty title",
    b"caf\xe9\tLatin-1": "invalid UTF-8",
    b"q\0\ttitle": "a NUL byte",
    b"q\tan old\rline end": "a carriage return within the line",
    b"q\t" + b"x" * (2 << 20): "a line of more than 1 MB",
}
FOUND = {
    "no tab": 4,
    "2 tabs": 2,
    "an empty query": 2,
    "an empty title": 2,
    "invalid UTF-8": 2,
    "a NUL byte": 2,
    "a carriage return within the line": 2,
    "a line of more than 1 MB": 2,
    "an empty file": 1,
}
GOOD = [(f"query {i}", f"title {i} \u00fc") for i in range(40)]


@pytest.fixture(scope="module")
def shards(tmp_path_factory) -> pathlib.Path:
    """Two files in which each third line is bad, an empty one, a clean one."""
    folder = tmp_path_factory.mktemp("shards")
    lines = [f"{query}\t{title}".encode() for query, title in GOOD]
    bad = list(BAD)
    for name, clicks in (("a.tsv", lines[:18]), ("b.tsv.gz", lines[18:36])):
        mixed = b"\xef\xbb\xbf" + b"\n".join(
            line
            for at, wrong in enumerate(bad)
            for line in (*clicks[2 * at : 2 * at + 2], wrong)
        )
        text = mixed + b"\r\n\n"
        (folder / name).write_bytes(
            gzip.compress(text, 1) if name.endswith(".gz") else text
        )
    (folder / "c.tsv").write_bytes(b"")
    (folder / "d.tsv").write_bytes(b"\r\n".join(lines[36:]))
    return folder


@pytest.fixture
def log(shards) -> ClickLog:
    return ClickLog(f"{shards}/*", max_bad_lines=19)


def read(dataset) -> list[tuple[str, str]]:
    return [
        (query.decode(), title.decode())
        for queries, titles in dataset.as_numpy_iterator()
        for query, title in zip(queries, titles, strict=True)
    ]


def test_the_same_lines_are_skipped_in_each_way_to_read(log, tmp_path):
    assert log.counts() == (18, 18, 0, 4) and log.bad_lines() == FOUND
    assert list(log) == GOOD
    assert read(evaluation_batches(log, 7)) == GOOD
    epochs = read(training_batches(log, 7, epochs=2, seed=1))
    assert sorted(epochs[:40]) == sorted(epochs[40:]) == sorted(GOOD)
    folder = split_log(log, tmp_path / "split", 10, 20)
    assert len(folder.documents) == 40


def test_a_resumed_run_sees_what_is_left(log):
    def batches(first: int) -> list[list[bytes]]:
        return [
            queries.tolist()
            for queries, _ in training_batches(
                log, 7, epochs=2, seed=3, first_step=first
            ).as_numpy_iterator()
        ]

    whole = batches(0)
    for step in (1, 5, 6, 11):
        assert batches(step) == whole[step:]


def test_one_bad_line_more_than_allowed(shards):
    for read_log in (ClickLog.count, list):
        with pytest.raises(InputError) as caught:
            read_log(ClickLog(f"{shards}/*", max_bad_lines=1))
        assert str(caught.value) == (
            f"{shards}/a.tsv:6: found no tab, expected query TAB clicked title"
            " in UTF-8: correct or remove it; with it there are 2 bad lines"
            " (no tab: 2), more than --max_bad_lines=1"
        )
    with pytest.raises(InputError, match="c.tsv: found an empty file"):
        ClickLog(f"{shards}/*", max_bad_lines=18).count()


def test_nothing_but_bad_lines(tmp_path):
    (tmp_path / "a.tsv").write_text("no tab\n" * 9)
    log = ClickLog(tmp_path / "a.tsv", max_bad_lines=99)
    with pytest.raises(InputError, match="a.tsv: found bad lines only"):
        log.count()


PIECES = [b"\t", b"\n", b"\r", b"\0", b"\xff", b"\xef\xbb\xbf", b"a", b" ",
          "\u00e9\u3000".encode()]  # fmt: skip


@settings(
    deadline=None, max_examples=10, suppress_health_check=list(HealthCheck)
)
@given(
    files=st.lists(
        st.lists(st.sampled_from(PIECES), max_size=40), min_size=20, max_size=40
    ),
    allowed=st.integers(0, 60),
)
def test_any_bytes_are_read_alike_or_refused(files, allowed, tmp_path):
    paths = []
    for number, pieces in enumerate(files):
        paths.append(tmp_path / f"{number:02}.tsv")
        paths[-1].write_bytes(b"good\tclick\n" + b"".join(pieces))
    log = ClickLog(paths, max_bad_lines=10_000)
    one_by_one = list(log)
    assert log.count() == len(one_by_one)
    assert read(evaluation_batches(log, 64)) == one_by_one
    strict = ClickLog(paths, allowed)
    if sum(log.bad_lines().values()) <= allowed:
        assert list(strict) == one_by_one and strict.counts() == log.counts()
        return
    messages = set()
    for read_log in (ClickLog.count, list):
        with pytest.raises(InputError) as caught:
            read_log(strict)
        messages.add(str(caught.value))
    assert len(messages) == 1
