"""Clicks: signed results, and a log that trainings read."""

import errno
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_lstm_dssm.data import ClickLog, Pair
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.serving.clicks import (
    LIFETIME_SECONDS,
    ClickWriter,
    TokenError,
)

BOLT = Pair("bolt", "hex bolt")


@pytest.fixture
def clicks(tmp_path) -> Iterator[ClickWriter]:
    with ClickWriter(tmp_path / "clicks.tsv") as writer:
        yield writer


def write(clicks: ClickWriter, pair: Pair = BOLT) -> bool:
    return clicks.write(clicks.issue(*pair))


def test_a_token_counts_once_among_any_number_of_results(
    clicks, monkeypatch, tmp_path
):
    monkeypatch.setattr(os, "fsync", lambda number: None)
    first = clicks.issue(*BOLT)
    assert clicks.write(first)
    assert not clicks.write(first)
    for _ in range(100_001):
        assert write(clicks)
    assert not clicks.write(first)
    assert not clicks.write(first)
    assert ClickLog(tmp_path / "clicks.tsv").count() == 100_002


def test_followed_results_are_forgotten_with_their_tokens(clicks, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    tokens = [clicks.issue(*BOLT) for _ in range(8)]
    assert all(map(clicks.write, tokens))
    now[0] = LIFETIME_SECONDS
    assert not any(map(clicks.write, tokens))
    now[0] += 1
    with pytest.raises(TokenError, match="too old"):
        clicks.write(tokens[0])
    assert write(clicks)
    assert len(clicks._clicked) == 1


def test_forged_foreign_and_old_tokens(clicks, tmp_path):
    token = clicks.issue(*BOLT)
    with ClickWriter(tmp_path / "old.tsv", lifetime=-1) as old:
        foreign = old.issue(*BOLT)
        with pytest.raises(TokenError, match="too old"):
            old.write(foreign)
    changed = token[:60] + ("A" if token[60] != "A" else "B") + token[61:]
    for wrong in (foreign, changed, token[:-8], "", "é", "{}", "A" * 44):
        with pytest.raises(TokenError, match="not a result of this server"):
            clicks.write(wrong)


@settings(deadline=None)
@given(st.lists(st.tuples(st.text(), st.text()), min_size=1))
def test_any_texts_are_lines_that_a_training_reads(tmp_path_factory, pairs):
    path = tmp_path_factory.mktemp("any") / "clicks.tsv"
    with ClickWriter(path) as clicks:
        written = sum(write(clicks, Pair(*pair)) for pair in pairs)
        assert write(clicks)
    log = list(ClickLog(path))
    assert len(log) == written + 1
    assert log[-1] == BOLT


def test_control_characters_become_spaces(tmp_path):
    path = tmp_path / "clicks.tsv"
    with ClickWriter(path) as clicks:
        assert write(clicks, Pair("a\tb\r\nc\0", "\ufeffd\x1b[1m\u2028e"))
        assert not write(clicks, Pair("\t", "title"))
    assert path.read_text() == "a b c\td [1m e\n"
    assert path.stat().st_mode & 0o777 == 0o600


def test_each_click_is_on_disk_and_files_rotate(tmp_path, monkeypatch):
    synced: list[int] = []
    fsync = os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda number: (synced.append(number), fsync(number))
    )
    path = tmp_path / "clicks.tsv"
    line = len("bolt\thex bolt\n")
    with ClickWriter(path, rotate_mb=2 * line / (1 << 20)) as clicks:
        synced.clear()
        for _ in range(5):
            write(clicks)
        assert len(synced) >= 5
    old = sorted(tmp_path.glob("clicks-*.tsv"))
    assert [file.stat().st_size // line for file in [*old, path]] == [2, 2, 1]
    assert ClickLog(str(tmp_path / "clicks*.tsv")).count() == 5


def test_threads_write_whole_lines(tmp_path):
    path = tmp_path / "clicks.tsv"
    pairs = [Pair(f"query {n}", f"title {n}") for n in range(100)]
    with (
        ClickWriter(path, rotate_mb=0.001) as clicks,
        ThreadPoolExecutor(8) as pool,
    ):
        list(pool.map(partial(write, clicks), pairs))
    log = ClickLog(str(tmp_path / "clicks*.tsv"))
    assert sorted(log) == sorted(pairs)


def test_what_a_crash_left_of_a_line_is_removed(tmp_path):
    path = tmp_path / "clicks.tsv"
    path.write_text("bolt\thex bolt\nglue\tint" + "x" * 10_000)
    with ClickWriter(path) as clicks:
        write(clicks, Pair("lamp", "desk lamp"))
    assert path.read_text() == "bolt\thex bolt\nlamp\tdesk lamp\n"


def test_a_log_that_another_program_renames(tmp_path):
    (tmp_path / "log").mkdir()
    path = tmp_path / "log" / "clicks.tsv"
    with ClickWriter(path) as clicks:
        write(clicks)
        path.rename(tmp_path / "yesterday.tsv")
        write(clicks, Pair("lamp", "desk lamp"))
        assert path.read_text() == "lamp\tdesk lamp\n"
        path.parent.rename(tmp_path / "older")
        write(clicks)
    assert ClickLog(path).count() == 1
    assert ClickLog(tmp_path / "yesterday.tsv").count() == 1


def test_a_click_that_failed_can_be_repeated(tmp_path, monkeypatch):
    """A full disk leaves no part of a line, and no mark."""
    path = tmp_path / "clicks.tsv"
    os_write = os.write

    def full(number: int, data: bytes) -> int:
        if len(data) > 5:
            return os_write(number, data[:5])
        raise OSError(errno.ENOSPC, "No space left on device")

    with ClickWriter(path) as clicks:
        write(clicks)
        token = clicks.issue(*BOLT)
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            with pytest.raises(OSError, match="No space"):
                clicks.write(token)
        assert clicks.write(token)
        assert not clicks.write(token)
    assert path.read_text() == "bolt\thex bolt\n" * 2


def test_what_is_no_file_is_refused_at_the_start(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in ("/dev/null", tmp_path / "pipe"):
        with pytest.raises(InputError, match="expected a regular file"):
            ClickWriter(path)


def test_one_process_at_a_time(tmp_path):
    path = tmp_path / "clicks.tsv"
    with (
        ClickWriter(path),
        pytest.raises(InputError, match="another process writes clicks"),
    ):
        ClickWriter(path)
    with pytest.raises(InputError, match="there is no folder"):
        ClickWriter(tmp_path / "none" / "clicks.tsv")
