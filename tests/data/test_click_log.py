"""Logs of clicks: whole, with bad lines left out, and dealt to workers."""

import gzip
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keras_lstm_dssm.data import (
    ClickLog,
    Pair,
    evaluation_batches,
    training_batches,
)
from keras_lstm_dssm.data.statistics import alphabet_warning
from keras_lstm_dssm.errors import InputError

WAYS = (ClickLog.count, list)
"""Ways to read a log, which must agree."""


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(gzip.compress(data, 1) if path.suffix == ".gz" else data)
    return path


def lines(first: int, count: int) -> bytes:
    numbers = range(first, first + count)
    return b"".join(b"query %d\ttitle %d\n" % (n, 2 * n) for n in numbers)


def read(dataset) -> list[tuple[str, str]]:
    return [
        (query.decode(), title.decode())
        for queries, titles in dataset.as_numpy_iterator()
        for query, title in zip(queries, titles, strict=True)
    ]


def test_globs_gzip_bom_and_crlf(tmp_path):
    write(tmp_path / "b.tsv.gz", b"angle bracket\t12-Gauge Angle")
    write(
        tmp_path / "a.tsv", b"\xef\xbb\xbf l bracket \tAngle\r\n\xc3\xbf\tB\r\n"
    )
    log = ClickLog(f"{tmp_path}/*.tsv*")
    assert [Path(p).name for p in log.paths] == ["a.tsv", "b.tsv.gz"]
    assert log.count() == 3
    assert list(log) == [
        Pair("l bracket", "Angle"),
        Pair("\u00ff", "B"),
        Pair("angle bracket", "12-Gauge Angle"),
    ]


def test_documents_are_distinct_in_order_of_appearance(tmp_path):
    path = write(tmp_path / "a.tsv", b"q\tz\nq\ta\nr\tz\ns\tm\n")
    assert list(ClickLog([path, str(path)]).documents()) == ["z", "a", "m"]


def test_counts_across_chunks_and_names_the_line(tmp_path, monkeypatch):
    monkeypatch.setattr("keras_lstm_dssm.plain_files._CHUNK", 7)
    path = write(tmp_path / "a.tsv", lines(0, 50))
    assert ClickLog(path).count() == 50
    assert list(ClickLog(path))[49] == ("query 49", "title 98")
    write(path, lines(0, 41) + b"no tab\n" + lines(42, 8))
    with pytest.raises(InputError, match=r"a\.tsv:42: found no tab"):
        ClickLog(path).count()


@pytest.mark.parametrize("chunk", [1, 3, 1000])
def test_a_blank_line_within_is_wrong(tmp_path, monkeypatch, chunk):
    monkeypatch.setattr("keras_lstm_dssm.plain_files._CHUNK", chunk)
    path = write(tmp_path / "a.tsv", b"a\tb\n\n\nc\td\n\n")
    for read_log in WAYS:
        with pytest.raises(InputError, match="a.tsv:2: found no tab"):
            read_log(ClickLog(path))


@pytest.mark.parametrize("data", [b"", b"\xef\xbb\xbf", b"\n\r\n \n"])
def test_an_empty_file(tmp_path, data):
    with pytest.raises(InputError, match="a.tsv: found an empty file"):
        ClickLog(write(tmp_path / "a.tsv", data)).count()


def test_nothing_there(tmp_path):
    for name, message in (
        ("none.tsv", "none.tsv: no such file, expected a click file"),
        ("none-*.tsv", "none-.*: no file matches, expected a click file"),
        ("", "found a folder, expected click files"),
    ):
        with pytest.raises(InputError, match=message):
            ClickLog(tmp_path / name)
    with pytest.raises(InputError, match="no click file was given"):
        ClickLog([])
    log = ClickLog(write(tmp_path / "a.tsv", b"a\tb\n"))
    (tmp_path / "a.tsv").unlink()
    for read_log in WAYS:
        with pytest.raises(InputError, match="a.tsv: cannot be read .No such"):
            read_log(log)


def test_no_line_end_at_all_does_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("keras_lstm_dssm.plain_files._CHUNK", 1 << 10)
    monkeypatch.setattr("keras_lstm_dssm.plain_files._LONGEST", 1 << 20)
    path = write(tmp_path / "a.tsv", b"a\tb\n" + b"\0" * (2 << 20))
    with pytest.raises(InputError, match="a.tsv: found 1 MB without the end"):
        ClickLog(path, max_bad_lines=9).count()


BAD = {
    b"no tab here": "no tab", b"": "no tab",
    b"three\tcolumns\tare too many": "2 tabs", b"\ttitle": "an empty query",
    b"query\t \r": "an empty title", b"caf\xe9\tLatin-1": "invalid UTF-8",
    b"q\0\ttitle": "a NUL byte",
    b"q\tan old\rline end": "a carriage return within the line",
    b"q\t" + b"x" * (2 << 20): "a line of more than 1 MB",
}  # fmt: skip
GOOD = [(f"query {i}", f"title {i} \u00fc") for i in range(40)]


@pytest.fixture(scope="module")
def shards(tmp_path_factory) -> Path:
    """Two files in which each third line is bad, an empty one, a clean one."""
    folder = tmp_path_factory.mktemp("shards")
    clicks = [f"{query}\t{title}".encode() for query, title in GOOD]
    for name, first in (("a.tsv", 0), ("b.tsv.gz", 18)):
        mixed = [
            line
            for at, wrong in enumerate(BAD)
            for line in (*clicks[first + 2 * at :][:2], wrong)
        ]
        write(folder / name, b"\xef\xbb\xbf" + b"\n".join(mixed) + b"\r\n\n")
    write(folder / "c.tsv", b"")
    write(folder / "d.tsv", b"\r\n".join(clicks[36:]))
    return folder


def test_the_same_lines_are_skipped_in_each_way_to_read(shards, tmp_path):
    log = ClickLog(f"{shards}/*", max_bad_lines=19)
    assert log.counts() == (18, 18, 0, 4)
    found = dict.fromkeys(BAD.values(), 2) | {"no tab": 4, "an empty file": 1}
    assert log.bad_lines() == found
    assert list(log) == GOOD
    assert read(evaluation_batches(log, 7)) == GOOD
    epochs = read(training_batches(log, 7, epochs=2, seed=1))
    assert sorted(epochs[:40]) == sorted(epochs[40:]) == sorted(GOOD)


def test_one_bad_line_more_than_allowed(shards, tmp_path):
    for read_log in WAYS:
        with pytest.raises(InputError) as caught:
            read_log(ClickLog(f"{shards}/*", max_bad_lines=1))
        assert str(caught.value) == (
            f"{shards}/a.tsv:6: found no tab, expected query TAB clicked title"
            " in UTF-8: correct or remove it; including it, 2 lines are bad"
            " (no tab: 2), more than --max_bad_lines=1"
        )
    with pytest.raises(InputError, match="c.tsv: found an empty file"):
        ClickLog(f"{shards}/*", max_bad_lines=18).count()
    path = write(tmp_path / "a.tsv", b"no tab\n" * 9)
    with pytest.raises(InputError, match="a.tsv: found bad lines only"):
        ClickLog(path, max_bad_lines=99).count()


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
    paths = [
        write(
            tmp_path / f"{number:02}.tsv", b"good\tclick\n" + b"".join(pieces)
        )
        for number, pieces in enumerate(files)
    ]
    log = ClickLog(paths, max_bad_lines=10_000)
    one_by_one = list(log)
    assert log.count() == len(one_by_one)
    assert read(evaluation_batches(log, 64)) == one_by_one
    strict = ClickLog(paths, allowed)
    if sum(log.bad_lines().values()) <= allowed:
        assert list(strict) == one_by_one and strict.counts() == log.counts()
        return
    messages = set()
    for read_log in WAYS:
        with pytest.raises(InputError) as caught:
            read_log(strict)
        messages.add(str(caught.value))
    assert len(messages) == 1


def log(path: Path, *lines: str) -> ClickLog:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return ClickLog(path)


def test_words_of_another_script_are_named(tmp_path):
    path = tmp_path / "clicks.tsv"
    russian = "\u043e\u0442\u0435\u043b\u044c"
    line = alphabet_warning(log(path, "a\tb c", f"{russian}\tHotel {russian}"))
    assert line == (
        "33% of the words are in letters other than a-z (such as"
        f" {russian!r}), which encoders without oov_buckets cannot"
        " distinguish: set oov_buckets=8192 (--oov_buckets=8192)"
    )


@pytest.mark.parametrize("text", [
    "caf\u00e9 \uff22\uff2f\uff2c\uff34 12 & 5\u20ac \u2014 \u00bd",
    "hotel " * 200 + "\u4e0a\u6d77",  # fewer than 1 %
], ids=["accents, full width and signs", "rare"])  # fmt: skip
def test_no_warning(text, tmp_path):
    assert alphabet_warning(log(tmp_path / "a.tsv", f"a b\t{text}")) is None
