"""A log that is divided among workers: each line is read by one of them."""

from pathlib import Path

import pytest

from keras_lstm_dssm.data import ClickLog
from keras_lstm_dssm.distributed.sharded_log import ShardedClickLog
from keras_lstm_dssm.errors import InputError
from tests.data.test_click_log import lines, write


def parts(
    paths: list[Path], workers: int, **options: int
) -> list[ShardedClickLog]:
    """Opens the parts of all workers, which are together the whole log."""
    names = [str(path) for path in paths]
    return [
        ShardedClickLog(names, r, workers, **options) for r in range(workers)
    ]


@pytest.mark.parametrize("workers", [1, 2, 3, 7])
def test_each_line_is_read_by_one_worker(tmp_path, workers):
    """Five files, of which as many as workers go round are read whole."""
    paths = [
        write(
            tmp_path / f"{number}.tsv{'.gz' * (number == 4)}",
            lines(10_000 * number, 3_000 + number),
        )
        for number in range(5)
    ]
    dealt = parts(paths, workers)
    assert sorted(pair for log in dealt for pair in log) == sorted(
        ClickLog(paths)
    )
    counts = [log.count() for log in dealt]
    assert sum(counts) == 15_010
    # Files of a size, and lines of the rest: all parts are alike.
    assert max(counts) - min(counts) <= 1_100
    assert str(paths[0]) in dealt[0].paths or workers > 5


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n \n\n", b"\n" * 15])
@pytest.mark.parametrize("workers", [2, 3, 5])
def test_ends_of_dealt_files(tmp_path, end, workers):
    path = write(
        tmp_path / "clicks.tsv", b"\xef\xbb\xbf" + lines(0, 9).rstrip() + end
    )
    dealt = [pair for log in parts([path], workers) for pair in log]
    assert dealt == list(ClickLog(path))


def test_bad_lines_of_a_dealt_log_have_their_numbers(tmp_path, monkeypatch):
    path = write(
        tmp_path / "clicks.tsv", lines(0, 40) + b"no tab\n" + lines(40, 9)
    )
    assert 20 < ShardedClickLog([str(path)], 0, 2).count() < 30
    zipped = write(tmp_path / "a.gz", lines(0, 2_000) + b"no tab\n")
    for wrong, number in ((path, 41), (zipped, 2001)):
        with pytest.raises(InputError, match=f"{number}: found no tab"):
            ShardedClickLog([str(wrong)], 1, 2)
    # Lines are counted for a message only.
    module = "keras_lstm_dssm.distributed.sharded_log"
    monkeypatch.setattr(f"{module}._line_number", pytest.fail)
    dealt = parts([path], 2, max_bad_lines=1)
    assert sum(log.count() for log in dealt) == 49
    assert [log.bad_lines() for log in dealt] == [{}, {"no tab": 1}]


def test_too_few_lines_or_files_for_all_workers(tmp_path):
    one = write(tmp_path / "clicks.tsv", lines(0, 1))
    assert ShardedClickLog([str(one)], 0, 2).count() == 1
    empty = write(tmp_path / "empty.tsv", b"\n")
    for path, worker, message in (
        (one, 1, "too few lines for 2 workers"),
        (empty, 0, "an empty file"),
        (tmp_path / "none.tsv", 1, "cannot be read"),
    ):
        with pytest.raises(InputError, match=message):
            ShardedClickLog([str(path)], worker, 2)


def test_further_files_are_cut(tmp_path):
    clicks = write(tmp_path / "clicks.tsv", lines(0, 10))
    further = write(tmp_path / "further.tsv", lines(100, 10))
    logs = [ShardedClickLog([str(clicks)], r, 2, cut=[further]) for r in (0, 1)]
    assert all(9 <= log.count() <= 11 for log in logs)
    assert {*logs[0], *logs[1]} == {*ClickLog([clicks, further])}
