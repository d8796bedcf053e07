"""lstm-dssm-encode --write=keys: the key sentences and key words of a page."""

import gzip
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.tools import encode
from tests.models.small_keyvec import small_keyvec
from tests.tools.conftest import saved_run, succeed

PAGE = "The hex bolt of steel. Wood glue!\n\nThe drill of the lamp? Glue\n"


@pytest.fixture(scope="module")
def model() -> dssm.KeyVec:
    return small_keyvec(max_sentences=4)


@pytest.fixture(scope="module")
def run(model, tmp_path_factory) -> Path:
    return saved_run(tmp_path_factory.mktemp("keyvec") / "run", model)


@contextmanager
def standard_input(data: bytes) -> Iterator[None]:
    """Replaces the standard input of this process."""
    before = os.dup(0)
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        os.dup2(file.fileno(), 0)
    try:
        yield
    finally:
        os.dup2(before, 0)
        os.close(before)


def write_keys(page: object, run: Path, **flags: object) -> None:
    succeed(encode, write="keys", input=page, run=run, k=3, **flags)


def test_most_probable_first(model, run, tmp_path, capsys):
    page, out = tmp_path / "page.txt", tmp_path / "keys.json"
    page.write_text(PAGE)
    write_keys(page, run, json=out)
    sentences = model.key_sentences(PAGE, 3)
    words = model.key_words(PAGE, 3)
    printed = [f"{p:.4f}  {text}" for text, p in sentences]
    printed += ["", *(f"{p:.4f}  {word}" for word, p in words)]
    assert capsys.readouterr().out.splitlines() == printed
    assert sentences[0][1] > sentences[2][1]
    found = json.loads(out.read_text())
    assert found.pop("page") == str(page)
    for name, expected in (("sentence", sentences), ("word", words)):
        assert found[f"{name}s"] == [
            {name: text, "probability": pytest.approx(p)}
            for text, p in expected
        ]
    packed = tmp_path / "page.gz"
    packed.write_bytes(gzip.compress(("\ufeff" + PAGE + "\nFive!").encode()))
    write_keys(packed, run)
    found = capsys.readouterr()
    assert found.out.splitlines() == printed  # without the fifth sentence
    assert found.err == "the model reads the first 4 of 5 sentences\n"
    with standard_input(PAGE.encode()):
        write_keys("-", run)
    assert capsys.readouterr().out.splitlines() == printed


@pytest.mark.parametrize(("content", "message"), [
    (None, "page: cannot be read (No such file or directory), expected"),
    ("folder", "page: cannot be read (Is a directory), expected a text"),
    (b"", "page: found no text, expected the text of a page"),
    (b" \n\t\n", "page: found no text"),
    (b"one\ntw\xff", "page:2: found invalid UTF-8 (invalid start byte)"),
    (b"\nPK\0\x01", "page:2: found a NUL, as in binary files"),
    (b"x" * ((1 << 26) + 1), "page: found more than 64 MB"),
], ids=["none", "dir", "empty", "blank", "binary", "NUL", "long"])  # fmt: skip
def test_what_is_no_page_is_told_before_the_model_is_loaded(
    content, message, tmp_path, refused
):
    command = ["encode", "--write=keys", f"--run={tmp_path}"]
    page = tmp_path / "page"
    if isinstance(content, bytes):
        page.write_bytes(content)
    elif content:
        page.mkdir()
    code = encode.program.run([*command, f"--input={page}"])
    assert refused(code, message) == ""
    if isinstance(content, bytes) and len(content) < 99:
        with standard_input(content):
            code = encode.program.run([*command, "--input=-"])
        refused(code, message.replace("page:", "standard input:"))
