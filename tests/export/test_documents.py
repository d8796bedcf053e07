"""The file of titles."""

import gzip
import pathlib

import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export import Documents, read_documents


def test_titles_are_their_own_ids_once(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "titles.txt"
    path.write_bytes("\ufeffhex bolt\r\n\r\nwood glue \nhex bolt\n".encode())
    titles = ["hex bolt", "wood glue"]
    assert read_documents(path) == Documents(titles, titles)


def test_ids_and_gzip(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "titles.tsv.gz"
    path.write_bytes(gzip.compress(b"a\thex bolt\nb\twood glue"))
    expected = Documents(["a", "b"], ["hex bolt", "wood glue"])
    assert read_documents(path) == expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\tb\tc\n", "titles:1: found 'a.*expected a title"),
        (b"x\ty\n\tz\n", "titles:2"),
        (b"a\tb\na\tc\n", "titles:2: id 'a' has another title"),
        (b"\n \n", "found an empty file"),
        ("\u3000\n".encode(), "no titles"),
        (b"a\thex bolt\nb\tcaf\xe9\n", "titles:2: found invalid UTF-8"),
    ],
)
def test_wrong_lines(
    content: bytes, message: str, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "titles"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_documents(path)


def test_broken_gzip(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "titles.gz"
    path.write_bytes(gzip.compress(b"hex bolt\n" * 1000)[:-12])
    with pytest.raises(InputError, match="titles.gz:890: found a damaged gzip"):
        read_documents(path)
