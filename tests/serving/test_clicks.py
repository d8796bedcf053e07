"""Clicks: signed results, and a log that trainings read."""

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_lstm_dssm.data import ClickLog, Pair
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.serving.clicks import ClickTokens, ClickWriter, TokenError

BOLT = Pair("bolt", "hex bolt")


def test_a_token_counts_once_a_search() -> None:
    tokens = ClickTokens()
    first = tokens.issue("search 1", "bolt", "hex bolt")
    second = tokens.issue("search 2", "bolt", "hex bolt")
    assert tokens.redeem(first) == BOLT
    assert tokens.redeem(first) is None
    assert tokens.redeem(second) == BOLT


def test_forged_foreign_and_old_tokens() -> None:
    tokens = ClickTokens()
    token = tokens.issue("a", "bolt", "hex bolt")
    foreign = ClickTokens().issue("a", "bolt", "hex bolt")
    changed = token[:60] + ("A" if token[60] != "A" else "B") + token[61:]
    for wrong in (foreign, changed, token[:-8], "", "é", "{}", "A" * 44):
        with pytest.raises(TokenError, match="not a result of this server"):
            tokens.redeem(wrong)
    old = ClickTokens(lifetime=-1)
    with pytest.raises(TokenError, match="too old"):
        old.redeem(old.issue("a", "bolt", "hex bolt"))


@settings(deadline=None)
@given(st.lists(st.tuples(st.text(), st.text()), min_size=1))
def test_any_texts_are_lines_that_a_training_reads(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]]
) -> None:
    path = tmp_path_factory.mktemp("any") / "clicks.tsv"
    with ClickWriter(path) as clicks:
        written = sum(clicks.write(Pair(*pair)) for pair in pairs)
        assert clicks.write(BOLT)
    log = list(ClickLog(path))
    assert len(log) == written + 1
    assert log[-1] == BOLT


def test_control_characters_become_spaces(tmp_path: Path) -> None:
    path = tmp_path / "clicks.tsv"
    with ClickWriter(path) as clicks:
        assert clicks.write(Pair("a\tb\r\nc\0", "\ufeffd\x1b[1m\u2028e"))
        assert not clicks.write(Pair("\t", "title"))
    assert path.read_text() == "a b c\td [1m e\n"
    assert path.stat().st_mode & 0o777 == 0o600


def test_each_click_is_on_disk_and_files_rotate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
            clicks.write(BOLT)
        assert len(synced) >= 5
    old = sorted(tmp_path.glob("clicks-*.tsv"))
    assert [file.stat().st_size // line for file in [*old, path]] == [2, 2, 1]
    assert ClickLog(str(tmp_path / "clicks*.tsv")).count() == 5


def test_threads_write_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "clicks.tsv"
    pairs = [Pair(f"query {n}", f"title {n}") for n in range(100)]
    with (
        ClickWriter(path, rotate_mb=0.001) as clicks,
        ThreadPoolExecutor(8) as pool,
    ):
        list(pool.map(clicks.write, pairs))
    log = ClickLog(str(tmp_path / "clicks*.tsv"))
    assert sorted(log) == sorted(pairs)


def test_what_a_crash_left_of_a_line_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "clicks.tsv"
    path.write_text("bolt\thex bolt\nglue\tint" + "x" * 10_000)
    with ClickWriter(path) as clicks:
        clicks.write(Pair("lamp", "desk lamp"))
    assert path.read_text() == "bolt\thex bolt\nlamp\tdesk lamp\n"


def test_a_log_that_another_program_renames(tmp_path: Path) -> None:
    path = tmp_path / "clicks.tsv"
    with ClickWriter(path) as clicks:
        clicks.write(BOLT)
        path.rename(tmp_path / "yesterday.tsv")
        clicks.write(Pair("lamp", "desk lamp"))
    assert path.read_text() == "lamp\tdesk lamp\n"
    assert ClickLog(tmp_path / "yesterday.tsv").count() == 1


def test_a_full_disk_leaves_no_part_of_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "clicks.tsv"
    write = os.write

    def full(number: int, data: bytes) -> int:
        if len(data) > 5:
            return write(number, data[:5])
        raise OSError(errno.ENOSPC, "No space left on device")

    with ClickWriter(path) as clicks:
        clicks.write(BOLT)
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            with pytest.raises(OSError, match="No space"):
                clicks.write(BOLT)
        clicks.write(BOLT)
    assert path.read_text() == "bolt\thex bolt\n" * 2


def test_one_process_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "clicks.tsv"
    with (
        ClickWriter(path),
        pytest.raises(InputError, match="another process writes clicks"),
    ):
        ClickWriter(path)
    with pytest.raises(InputError, match="there is no folder"):
        ClickWriter(tmp_path / "none" / "clicks.tsv")
