import gzip
import pathlib

import pytest

from keras_lstm_dssm.data import ClickLog, Pair
from keras_lstm_dssm.errors import InputError


def write(path: pathlib.Path, data: bytes) -> pathlib.Path:
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def test_globs_gzip_bom_and_crlf(tmp_path):
    write(tmp_path / "b.tsv.gz", b"angle bracket\t12-Gauge Angle")
    write(
        tmp_path / "a.tsv", b"\xef\xbb\xbf l bracket \tAngle\r\n\xc3\xbf\tB\r\n"
    )
    log = ClickLog(f"{tmp_path}/*.tsv*")
    assert [pathlib.Path(p).name for p in log.paths] == ["a.tsv", "b.tsv.gz"]
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
    monkeypatch.setattr("keras_lstm_dssm.text_files._CHUNK", 7)
    lines = [f"query {i}\ttitle {i}\n".encode() for i in range(50)]
    path = write(tmp_path / "a.tsv", b"".join(lines))
    assert ClickLog(path).count() == 50
    assert list(ClickLog(path))[49] == ("query 49", "title 49")
    lines[41] = b"no tab\n"
    write(path, b"".join(lines))
    with pytest.raises(InputError, match=r"a\.tsv:42: found no tab"):
        ClickLog(path).count()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (b"no tab", "no tab"),
        (b"", "no tab"),
        (b"a\tb\tc", "2 tabs"),
        (b" \tb", "an empty query"),
        (b"a\t \r", "an empty title"),
        (b"\t", "an empty query"),
        (b"\xef\xbb\xbf\tb", "an empty query"),
        (b"\xff x\tb", "invalid UTF-8"),
        (b"x\ted\xed\xa0\x80", "invalid UTF-8"),
        (b"a\0\tb", "a NUL byte"),
        (b"a\tb\rc", "a carriage return within the line"),
        (b"a\t" + b"b" * (10 << 20), "a line of more than 1 MB"),
    ],
    ids=lambda value: str(value)[:20],
)
@pytest.mark.parametrize("name", ["a.tsv", "a.tsv.gz"])
def test_a_wrong_line_is_named(tmp_path, name, line, found):
    path = write(tmp_path / name, b"good\tline\n" + line + b"\nx\ty\n")
    expected = f"{path}:2: found {found}, expected query TAB clicked title"
    for read in (ClickLog.count, list):
        with pytest.raises(InputError) as caught:
            read(ClickLog(path))
        assert str(caught.value).startswith(expected)
        assert "\n" not in str(caught.value)


def test_two_wrongs_do_not_make_a_right(tmp_path):
    # As many tabs as lines, but not one in each.
    path = write(tmp_path / "a.tsv", b"a\tb\tc\nd\n")
    with pytest.raises(InputError, match="a.tsv:1: found 2 tabs"):
        ClickLog(path).count()


@pytest.mark.parametrize("chunk", [1, 3, 1000])
def test_a_blank_line_within_is_wrong(tmp_path, monkeypatch, chunk):
    monkeypatch.setattr("keras_lstm_dssm.text_files._CHUNK", chunk)
    path = write(tmp_path / "a.tsv", b"a\tb\n\n\nc\td\n\n")
    for read in (ClickLog.count, list):
        with pytest.raises(InputError, match="a.tsv:2: found no tab"):
            read(ClickLog(path))


@pytest.mark.parametrize("data", [b"", b"\xef\xbb\xbf", b"\n\r\n \n"])
def test_an_empty_file(tmp_path, data):
    with pytest.raises(InputError, match="a.tsv: found an empty file"):
        ClickLog(write(tmp_path / "a.tsv", data)).count()


@pytest.mark.parametrize(
    ("damage", "line"),
    [
        (lambda b: b[:-9], 1000),
        (lambda b: b[: len(b) // 2], "[2-9].."),
        (lambda b: b"not gzip", 1),
        (lambda b: b[:30] + b[40:], 1),
    ],
)
def test_damaged_gzip_names_the_line_where_it_ends(tmp_path, damage, line):
    path = tmp_path / "a.tsv.gz"
    text = b"".join(b"q%d\tt%d\n" % (i, i * i) for i in range(999))
    path.write_bytes(damage(gzip.compress(text)))
    with pytest.raises(
        InputError, match=rf"a.tsv.gz:{line}: found a damaged gzip"
    ):
        ClickLog(path).count()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none.tsv", "none.tsv: no such file, expected a click file"),
        ("none-*.tsv", "none-.*: no file matches, expected a click file"),
        ("", "found a folder, expected click files"),
    ],
)
def test_nothing_there(tmp_path, name, message):
    with pytest.raises(InputError, match=message):
        ClickLog(tmp_path / name)


def test_a_file_that_vanishes(tmp_path):
    log = ClickLog(write(tmp_path / "a.tsv", b"a\tb\n"))
    (tmp_path / "a.tsv").unlink()
    for read in (ClickLog.count, list):
        with pytest.raises(InputError, match="a.tsv: cannot be read .No such"):
            read(log)


def test_no_line_end_at_all_does_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("keras_lstm_dssm.text_files._CHUNK", 1 << 10)
    monkeypatch.setattr("keras_lstm_dssm.text_files._LONGEST", 1 << 20)
    path = write(tmp_path / "a.tsv", b"a\tb\n" + b"\0" * (2 << 20))
    with pytest.raises(InputError, match="a.tsv: found 1 MB without the end"):
        ClickLog(path, max_bad_lines=9).count()


def test_no_path():
    with pytest.raises(InputError, match="no click file was given"):
        ClickLog([])
