"""Synthetic logs, and batches of equal size."""

import collections
from pathlib import Path

import pytest

from keras_lstm_dssm.benchmarks.click_data import (
    synthetic_lines,
    whole_batches,
    write_log,
)
from keras_lstm_dssm.benchmarks.measurement import WARM_STEPS
from keras_lstm_dssm.data import ClickLog
from keras_lstm_dssm.errors import InputError


@pytest.fixture(scope="module")
def log_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("logs") / "clicks.tsv"
    write_log(path, 100)
    return path


def test_small_log_is_the_beginning_of_a_large_one() -> None:
    small = "".join(synthetic_lines(70))
    assert small.count("\n") == 70
    assert "".join(synthetic_lines(50_001)).startswith(small)


def test_words_follow_zipf_and_queries_begin_the_titles() -> None:
    pairs = [
        line.split("\t")
        for line in "".join(synthetic_lines(20_000)).splitlines()
    ]
    assert all(title.startswith(query) for query, title in pairs)
    lengths = [len(title.split()) for _, title in pairs]
    assert (min(lengths), max(lengths)) == (6, 18)
    counts = collections.Counter(
        word for _, title in pairs for word in title.split()
    ).most_common(10)
    # Rank 1 is ten times as frequent as rank 10.
    assert 8 < counts[0][1] / counts[9][1] < 12


def test_whole_batches_leave_out_the_rest(log_path: Path) -> None:
    sizes = [
        len(query) for query, _ in whole_batches(ClickLog(log_path), 48, 5)
    ]
    assert sizes == [48] * (WARM_STEPS + 5)


def test_log_smaller_than_a_batch_is_refused(log_path: Path) -> None:
    with pytest.raises(InputError, match="100 clicks.*--batch_size"):
        whole_batches(ClickLog(log_path), 101, 1)
