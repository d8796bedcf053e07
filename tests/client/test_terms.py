"""The terms of BM25 in a hybrid retriever: words, and grams of letters."""

import pytest

from lstm_dssm_client.terms import letter_grams, split_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Hex-BOLT, 3/8", ["hex", "bolt", "3", "8"]),
        ("Große Schlüssel für Ä", ["grosse", "schlüssel", "für", "ä"]),
        ("上海 酒店。", ["上海", "酒店"]),
        (" \t-# ", []),
        (b"\xff bolt", ["bolt"]),
    ],
)
def test_words(text, words):
    assert split_words(text) == words


def test_only_the_first_words_of_a_query_are_read():
    assert split_words("a b c", 2) == ["a", "b"]


@pytest.mark.parametrize(
    ("word", "grams"),
    [
        ("good", ["#go", "goo", "ood", "od#"]),
        ("a", ["#a#"]),
        ("酒", ["酒#"]),
        ("上海酒店", ["上海", "海酒", "酒店", "店#"]),
        ("t恤衫", ["#t恤", "恤衫", "衫#"]),
        ("แก้ว", ["#แก", "แก้", "ก้ว", "้ว#"]),
    ],
)
def test_grams(word, grams):
    assert letter_grams(word) == grams
