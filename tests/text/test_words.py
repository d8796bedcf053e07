import hypothesis.strategies as st
import pytest
import tensorflow as tf
from hypothesis import given, settings

from keras_lstm_dssm.text import SPLITS, split_words
from tests import reference

# Scripts and forms whose folding no Unicode version has changed.
TEXT = st.text(
    st.one_of(
        st.characters(max_codepoint=0x7F),
        st.sampled_from(
            "ÀßéñİΩςЖяأهلا中文字ｆｕｌｌ１２½Ⅷ😀ﬁ"
            "\x85\xa0\u1680\u2003\u2028\u2029\u202f\u3000"
        ),
    )
)


def words(
    *texts: str | bytes, max_words: int | None = None, split: str = "space"
) -> list[list[str]]:
    rows = split_words(
        tf.constant(texts, tf.string), max_words, split
    ).to_list()
    return [[word.decode() for word in row] for row in rows]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hotels in  SHANGHAI\t2\n", ["hotels", "in", "shanghai", "2"]),
        ("ﬁne ｆｕｌｌ½", ["fine", "full1⁄2"]),  # NFKC
        ("Straße ΟΔΟΣ", ["strasse", "οδοσ"]),  # case folding, not lowering
        ("so\u00adft ze\u200bro", ["soft", "zero"]),  # invisible: dropped
        ("a\u2003b\u3000c\x85d\u1680e\u2028f\u2029g", [*"abcdefg"]),
        ("上海 酒店", ["上海", "酒店"]),
        ("فنادق في", ["فنادق", "في"]),
        ("ok 😀", ["ok", "😀"]),
        ("a\0b", ["a\0b"]),
        (b"\xff\xfe hi \xc3", ["\ufffd\ufffd", "hi", "\ufffd"]),
        ("", ["#"]),
        (" \t\u00ad ", ["#"]),
    ],
)
def test_splits_normalises_and_folds(
    text: str | bytes, expected: list[str]
) -> None:
    assert words(text) == [expected]


@pytest.mark.parametrize("split", SPLITS)
@settings(max_examples=100, deadline=None)
@given(texts=st.lists(TEXT, max_size=5))
def test_equals_the_plain_transcription(split: str, texts: list[str]) -> None:
    assert words(*texts, split=split) == [
        reference.split(text, split) for text in texts
    ]


def test_letters_and_digits() -> None:
    text = "Angle-Bracket, 1/2 in. (12 Gauge) C++ cafe\u0301 फ़ोन _x_"
    assert words(text, split="alphanumeric") == [
        "angle bracket 1 2 in 12 gauge c café फ़ोन x".split()
    ]
    assert words("?! -", split="alphanumeric") == [["#"]]


def test_keeps_10_000_words_or_the_first_max_words() -> None:
    text = " ".join(f"w{place}" for place in range(10_000))
    assert words(text) == [text.split()]
    assert words(text, "a", "", max_words=2) == [["w0", "w1"], ["a"], ["#"]]


def test_of_no_texts_there_are_no_words() -> None:
    assert words() == []
