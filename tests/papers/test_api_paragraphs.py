import gzip

import pytest

from keras_lstm_dssm import InputError
from keras_lstm_dssm.data import Collection, write_collection
from keras_lstm_dssm.data.api_sources import docstrings
from keras_lstm_dssm.papers.skip_thought import api_paragraphs, read_paragraphs

SOURCE = '''"""Tools for sorted lists. They are slow to build."""

def held():
    """Sort a list in place. It is stable. Equal items keep their order."""

def _private():
    """Search a sorted list.

    It takes logarithmic time.

    Args:
      x: The value that is searched. It may be missing.

    Returns the position found.
    """
    def inner():
        """Tools for sorted lists. They are slow to build."""

class Box:
    """Holds the one value."""

    def copy(self):
        """Make another box. It holds the same value. It is empty at first."""

    def middle(self):
        """Look at both ends. Sort a list in place. Then swap the halves."""
'''


@pytest.fixture
def collection(tmp_path) -> Collection:
    documents = {"d1": "list sort", "d2": "bisect"}
    queries = {"q1": "Sort a list in place", "q2": "Search a sorted list"}
    qrels = {
        "train": {"q2": {"d2": 1}},
        "dev": {"q1": {"d1": 1}},
        "test": {"q1": {"d1": 1}},
    }
    return write_collection(tmp_path / "api", documents, queries, qrels, [])


@pytest.fixture
def read(collection, tmp_path, monkeypatch) -> list[str]:
    """Lets `SOURCE` be all there is; says what was read."""
    path = tmp_path / "source.py"
    path.write_text(SOURCE)
    files = [(str(path), "source.py"), (str(tmp_path / "gone.py"), "gone.py")]
    seen: list[str] = []

    def source_files(_: object) -> list[tuple[str, str]]:
        seen.append("read")
        return files

    for name, instead in (
        ("build_api_search", lambda: collection),
        ("source_files", source_files),
        ("read_modules", lambda _: {}),
    ):
        for function in (api_paragraphs, docstrings):
            monkeypatch.setitem(function.__globals__, name, instead)
    return seen


def test_api_paragraphs(read):
    expected = [
        ["Tools for sorted lists", "They are slow to build"],
        # The summary is a query of dev: neither it, nor a step across it.
        ["It is stable", "Equal items keep their order"],
        ["Search a sorted list", "It takes logarithmic time"],
        ["Make another box", "It holds the same value", "It is empty at first"],
    ]
    assert sorted(api_paragraphs()) == sorted(expected)
    assert sorted(api_paragraphs()) == sorted(expected)
    assert read == ["read"]  # the second time it was kept


@pytest.mark.parametrize("name", ["text.txt", "text.txt.gz"])
def test_read_paragraphs(name, tmp_path):
    data = "\r\nOne. \r\nTwo – and.\r\n\n \nAlone.\n".encode()
    if name.endswith(".gz"):
        data = gzip.compress(data)
    (tmp_path / name).write_bytes(data)
    assert read_paragraphs(tmp_path / name) == [
        ["One.", "Two – and."],
        ["Alone."],
    ]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\n \n", "found an empty file"),
        (b"One.\n\nTwo.\n", "no two lines of text in a row"),
        (b"One.\n\xff.\n", "expected UTF-8"),
    ],
)
def test_wrong_files(data, message, tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes(data)
    with pytest.raises(InputError, match=message) as caught:
        read_paragraphs(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)
