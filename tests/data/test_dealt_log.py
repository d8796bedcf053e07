"""The parts that several workers read are together the whole log."""

import gzip

import pytest

from keras_lstm_dssm.data.click_log import ClickLog, ShardedClickLog
from keras_lstm_dssm.errors import InputError


def lines(first: int, count: int) -> bytes:
    numbers = range(first, first + count)
    return b"".join(b"query %d\ttitle %d\n" % (n, 2 * n) for n in numbers)


def parts(
    paths: list[str], workers: int, **options: int
) -> list[ShardedClickLog]:
    return [
        ShardedClickLog(paths, r, workers, **options) for r in range(workers)
    ]


@pytest.mark.parametrize("workers", [1, 2, 3, 7])
def test_each_line_is_read_once(tmp_path, workers):
    """Five files, of which as many as workers go round are read whole."""
    paths = [str(tmp_path / f"{n}.tsv{'.gz' * (n == 4)}") for n in range(5)]
    for number, path in enumerate(paths):
        data = lines(10_000 * number, 3_000 + number)
        opened = gzip.open if path.endswith("gz") else open
        with opened(path, "wb") as file:
            file.write(data)
    dealt = parts(paths, workers)
    read = [pair for log in dealt for pair in log]
    assert sorted(read) == sorted(ClickLog(paths))
    assert sum(log.count() for log in dealt) == 15_010
    # Files of a size, and lines of the rest: all parts are alike.
    counts = [log.count() for log in dealt]
    assert max(counts) - min(counts) <= 1_100
    assert paths[0] in dealt[0].paths or workers > 5


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n \n\n", b"\n" * 15])
@pytest.mark.parametrize("workers", [2, 3, 5])
def test_ends_of_files(tmp_path, end, workers):
    path = tmp_path / "clicks.tsv"
    path.write_bytes(b"\xef\xbb\xbf" + lines(0, 9).rstrip() + end)
    read = [pair for log in parts([str(path)], workers) for pair in log]
    assert read == list(ClickLog(path))


def test_bad_lines_have_their_numbers(tmp_path):
    path = tmp_path / "clicks.tsv"
    path.write_bytes(lines(0, 40) + b"no tab\n" + lines(40, 9))
    assert 20 < ShardedClickLog([str(path)], 0, 2).count() < 30
    with pytest.raises(InputError, match=r"clicks\.tsv:41: found no tab"):
        ShardedClickLog([str(path)], 1, 2)
    dealt = parts([str(path)], 2, max_bad_lines=1)
    assert sum(log.count() for log in dealt) == 49
    assert [log.bad_lines() for log in dealt] == [{}, {"no tab": 1}]
    with gzip.open(f"{path}.gz", "wb") as file:
        file.write(lines(0, 2_000) + b"no tab\n")
    with pytest.raises(InputError, match=r"gz:2001: found no tab"):
        ShardedClickLog([f"{path}.gz"], 1, 2)


def test_too_few_lines_or_files(tmp_path):
    path = tmp_path / "clicks.tsv"
    path.write_bytes(lines(0, 1))
    assert ShardedClickLog([str(path)], 0, 2).count() == 1
    with pytest.raises(InputError, match="too few lines for 2 workers"):
        ShardedClickLog([str(path)], 1, 2)
    path.write_bytes(b"\n")
    with pytest.raises(InputError, match="an empty file"):
        ShardedClickLog([str(path)], 0, 2)
    with pytest.raises(InputError, match="cannot be read"):
        ShardedClickLog([str(tmp_path / "none.tsv")], 1, 2)


def test_further_files_are_cut(tmp_path):
    clicks, further = tmp_path / "clicks.tsv", tmp_path / "further.tsv"
    clicks.write_bytes(lines(0, 10))
    further.write_bytes(lines(100, 10))
    logs = [ShardedClickLog([str(clicks)], r, 2, cut=[further]) for r in (0, 1)]
    assert all(9 <= log.count() <= 11 for log in logs)
    assert {*logs[0], *logs[1]} == {*ClickLog([clicks, further])}
