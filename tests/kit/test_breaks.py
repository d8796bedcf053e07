"""A break that no test finds is told, and all breaks can be applied."""

import re

import pytest

from tests.fresh_process import ROOT
from tests.kit import breaks


def test_a_break_is_found_only_by_a_test_that_fails(fresh_process, tmp_path):
    package = tmp_path / "keras_lstm_dssm" / "__init__.py"
    package.parent.mkdir()
    package.write_text("one = 1\ntwo = 2\ntwo_again = 2\n")
    (tmp_path / "test_one.py").write_text(
        "from keras_lstm_dssm import one\n\ndef test_one():\n"
        "    assert one == 1\n\ndef test_nothing():\n    pass\n"
    )
    before = package.read_text()

    def problem(old: str, new: str, test: str) -> str | None:
        row = breaks.Break("keras_lstm_dssm/__init__.py", old, new, test)
        found = breaks.survived(fresh_process, tmp_path, row)
        assert package.read_text() == before
        return found

    assert problem("one = 1", "one = 3", "test_one.py::test_one") is None
    for row, exit_code in (
        (("two = 2", "two = 3", "test_one.py::test_one"), 0),
        (("one = 1", "one = 3", "test_one.py::test_nothing"), 0),
        (("one = 1", "one = 3", "test_one.py::test_missing"), 4),
        (("one = 1", "one = ", "test_one.py::test_one"), 2),
    ):
        assert (problem(*row) or "").startswith(f"exit code {exit_code}: ")
    for old in ("= 2", "absent"):
        with pytest.raises(ValueError, match=r"times, expected it once"):
            problem(old, "", "test_one.py::test_one")


def test_every_break_can_be_applied_and_names_a_test():
    rows = breaks.read_breaks(breaks.BREAKS)
    assert len({*rows}) == len(rows) > 0
    for row in rows:
        assert (ROOT / row.file).read_text().count(row.old) == 1, row
        assert row.new != row.old, row
        path, name = re.split(r"::", row.test)
        text = (ROOT / path).read_text()
        assert f"def {name.split('[')[0]}(" in text, row.test


def test_words_of_no_break_are_one_line_before_any_test_runs(monkeypatch):
    def run(*_: object) -> None:
        raise AssertionError("a test was run")

    monkeypatch.setattr("tests.kit.breaks.copy_of_project", run)
    for words in (["absent"], ["README.md", "absent"]):
        with pytest.raises(SystemExit) as error:
            breaks.main(*words)
        message = str(error.value)
        assert message.startswith("error: no line of ") and "\n" not in message
        assert f"has {' and '.join(map(repr, words))}: give" in message
    rows = breaks.read_breaks(breaks.BREAKS)
    assert breaks.chosen_breaks() == rows
    assert 0 < len(breaks.chosen_breaks("README.md")) < len(rows)
