"""Tokens of a file: which requests have one, and how the file changes."""

import base64
import os
from pathlib import Path

import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.serving.security import TokenFile
from lstm_dssm_client.options import read_token

FIRST, SECOND = "a" * 15 + "1", "b" * 15 + "\u007e"


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "tokens"
    path.write_text(f"# two clients\n{FIRST}\n\n {SECOND} \r\n")
    return path


@pytest.mark.parametrize(
    ("authorization", "allowed"),
    [
        (f"Bearer {FIRST}", True),
        (f"bearer  {SECOND}", True),
        (f"Bearer {SECOND}".encode(), True),
        (basic(f"anyone:{FIRST}"), True),
        (basic(f":{SECOND}"), True),
        (None, False),
        ("", False),
        (b"", False),
        ("Bearer", False),
        ("Bearer ", False),
        (FIRST, False),
        (f"Bearer {FIRST}x", False),
        (f"Bearer {FIRST[:-1]}", False),
        (f"Bearer {FIRST} {SECOND}", False),
        (f"Bearer {FIRST.upper()}", False),
        ("Bearer # two clients", False),
        (f"Token {FIRST}", False),
        (basic(FIRST), False),
        ("Basic ====", False),
        (f"Basic {FIRST}\ud800", False),
        (b"Bearer \xff\xfe", False),
    ],
)
def test_which_requests_are_allowed(
    path: Path, authorization: str | bytes | None, allowed: bool
) -> None:
    assert TokenFile(path).allows(authorization) is allowed


def test_every_token_is_compared(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By digests of one length, also after the right one was found."""
    tokens = TokenFile(path)
    compared: list[tuple[int, int]] = []

    def compare(a: bytes, b: bytes) -> bool:
        compared.append((len(a), len(b)))
        return a == b

    monkeypatch.setattr("hmac.compare_digest", compare)
    assert tokens.allows(f"Bearer {FIRST}")
    assert not tokens.allows("Bearer x")
    assert compared == [(32, 32)] * 4


def test_the_file_is_read_again(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tokens = TokenFile(path)
    path.write_text(f"{SECOND}\n")
    assert not tokens.allows(f"Bearer {FIRST}")
    assert tokens.allows(f"Bearer {SECOND}")
    # A replaced file of the same size and time.
    new = path.with_name("new")
    new.write_text(f"{FIRST}\n")
    time = path.stat().st_mtime_ns
    os.utime(new, ns=(time, time))
    new.replace(path)
    assert tokens.allows(f"Bearer {FIRST}")
    # While it is wrong, the last tokens apply.
    for wrong in ("", "short\n"):
        path.write_text(wrong)
        for _ in range(3):
            assert tokens.allows(f"Bearer {FIRST}")
    path.unlink()
    assert tokens.allows(f"Bearer {FIRST}")
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == 3
    assert "found no token" in messages[0]
    assert "found 5 characters that are no token" in messages[1]
    assert "No such file" in messages[2]
    path.write_text(f"{SECOND}\n")
    assert not tokens.allows(f"Bearer {FIRST}")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "found no token; expected one token a line"),
        (b"# none\n", "found no token"),
        (b"a b c d e f g h i j k\n", ":1: found 21 characters that are no"),
        (b"\xff" * 20, ":1: found 20 characters that are no token"),
        (b"x" * 513, ":1: found 513 characters"),
        (b"x\n" * (1 << 20), "found more than a megabyte"),
    ],
    # The path, which the message has, is made from the test's name.
    ids=("empty", "comment", "spaces", "not_ascii", "long_token", "large"),
)
def test_files_without_tokens(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "tokens"
    path.write_bytes(content)
    for read in (TokenFile, read_token):
        with pytest.raises(InputError, match=message) as caught:
            read(path)
        assert "xxx" not in str(caught.value)  # it might be a secret


def test_the_token_of_a_client(path: Path) -> None:
    assert read_token(path) == FIRST
    with pytest.raises((InputError, OSError), match="No such file"):
        read_token(path.with_name("absent"))
