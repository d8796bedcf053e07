"""Lines of text files: blank ones at the end, and where UTF-8 breaks."""

import gzip

import pytest

from keras_lstm_dssm import text_files
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.text_files import text_lines


@pytest.mark.parametrize("chunk", [3, 5, 1000])
@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
@pytest.mark.parametrize(("content", "without", "with_end"), [
    (b"a\r\n\nb\n", ["a", "", "b"], ["a", "", "b"]),
    (b"\xef\xbb\xbfa\n\r\n \n", ["a"], ["a", "", " "]),
    (b"\n\n\xc3\xbc", ["", "", "\u00fc"], ["", "", "\u00fc"]),
    (b"a\n ", ["a"], ["a", " "]),
    (b"a\rb\n", ["a\rb"], ["a\rb"]),
])  # fmt: skip
def test_blank_lines_at_the_end(
    content, without, with_end, name, chunk, tmp_path, monkeypatch
):
    monkeypatch.setattr(text_files, "_CHUNK", chunk)
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if "gz" in name else content)
    assert list(text_lines(path)) == without
    assert list(text_lines(path, blank_end=True)) == with_end


def test_an_empty_file(tmp_path):
    path = tmp_path / "a.txt"
    for content, lines in ((b"", []), (b"\n\n", ["", ""])):
        path.write_bytes(content)
        assert list(text_lines(path, blank_end=True)) == lines
        with pytest.raises(InputError, match="a.txt: found an empty file"):
            list(text_lines(path))


def test_the_line_that_is_no_utf8(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "_CHUNK", 4)
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\ntwo\ncaf\xe9\n")
    with pytest.raises(InputError, match=r"txt:3: found invalid UTF-8 \(une"):
        list(text_lines(path))
