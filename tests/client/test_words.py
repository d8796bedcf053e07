"""Texts are read without TensorFlow as by the graphs, over all of Unicode.

And the terms of BM25 in a hybrid retriever: words, and grams of letters."""

import json
import random
import sys

import numpy as np
import pytest
import tensorflow as tf

import lstm_dssm_client.words as words_without_tensorflow
from keras_lstm_dssm.text.word_hashing import WORD_SPLITS, normalize_and_split
from keras_lstm_dssm.text.word_hashing import trigram_ids as ids_in_graph
from lstm_dssm_client import bm25
from lstm_dssm_client.unicode_tables import TABLES
from lstm_dssm_client.words import normalizer, trigram_ids
from tests.test_docs import load

ALL = [*range(0xD800), *range(0xE000, sys.maxunicode + 1)]
JAMO = [*range(0x1100, 0x1200), *range(0xA960, 0xA980), *range(0xAC00, 0xAC40)]


def random_texts(count: int, seed: int) -> list[bytes]:
    """Texts of up to 16 characters, of some of these sorts; some not UTF-8."""
    source = random.Random(seed)
    tables = normalizer()._tables
    marks = [ord(mark) for marks in tables.order for mark in marks]
    composing = [ord(char) for pair in tables.composed for char in pair]
    changing = [*map(ord, tables.compatible), *map(ord, tables.folded)]
    letters = [*b"abcdefghinopstuxyzABCEGINSZ0123456789#"]
    spaces = [*b" \t\n\x1f", 0xA0, 0x85, 0x2003, 0x3000, 0x200B, 0xAD]
    pools = ALL, marks, composing, changing, letters, spaces, JAMO, [*b"diegns"]
    texts = []
    for _ in range(count):
        chosen = source.choices(pools, k=source.randint(1, 3))
        points = [
            source.choice(source.choice(chosen))
            for _ in range(source.randint(0, 16))
        ]
        text = "".join(map(chr, points)).encode()
        if text and source.random() < 0.2:
            cut, byte = source.randrange(len(text)), source.randbytes(1)
            text = text[:cut] + byte + text[cut + 1 :]
        texts.append(text)
    return texts


def check_texts(
    texts: list[bytes], rule: str, oov_buckets: int, max_words: int | None = 5
) -> None:
    rows = normalize_and_split(tf.constant(texts, tf.string), max_words, rule)
    found = [
        words_without_tensorflow.split_words(text, rule, max_words) or ["#"]
        for text in texts
    ]
    for text, words, row in zip(texts, found, rows.to_list(), strict=True):
        expected = [word.decode() for word in row]
        assert words == expected, (text, text.decode("utf-8", "replace"))
    flat = [word for words in found for word in words]
    ids, bounds = trigram_ids(flat, oov_buckets)
    expected_ids, word = ids_in_graph(rows.flat_values, oov_buckets)
    np.testing.assert_array_equal(ids, expected_ids)
    of_word = np.repeat(np.arange(len(flat)), np.diff(bounds))
    np.testing.assert_array_equal(of_word, word)


@pytest.mark.parametrize("rule", WORD_SPLITS)
def test_random_texts_have_the_ids_of_the_graph(rule):
    for seed, oov_buckets in ((1, 0), (2, 777)):
        check_texts(random_texts(4000, seed), rule, oov_buckets)


@pytest.mark.slow
@pytest.mark.parametrize("rule", WORD_SPLITS)
def test_a_million_random_texts_have_the_ids_of_the_graph(rule):
    """A third of a million for each rule."""
    for seed in range(34):
        check_texts(random_texts(10_000, 100 + seed), rule, seed % 2 * 4096)


@pytest.mark.parametrize("size", [1023, 1024, 1025, 3000])
def test_long_words_and_texts_end_where_the_graph_ends_them(size):
    texts = ["b" * size, "é" * size, "x y " * size, "x" + "\u0301" * size]
    for rule in WORD_SPLITS:
        for max_words in (None, 5, 40):
            encoded = [text.encode() for text in texts]
            check_texts(encoded, rule, 99, max_words)


@pytest.mark.slow
def test_the_tables_are_those_of_this_tf_text():
    made = load("unicode_tables", "release").tables()
    assert made == json.loads(TABLES)


@pytest.mark.parametrize(("text", "words"), [
    ("Hex-BOLT, 3/8", ["hex", "bolt", "3", "8"]),
    ("Große Schlüssel für Ä", ["grosse", "schlüssel", "für", "ä"]),
    ("上海 酒店。", ["上海", "酒店"]),
    (" \t-# ", []),
    (b"\xff bolt", ["bolt"]),
])  # fmt: skip
def test_words_of_bm25(text, words):
    assert words_without_tensorflow.split_words(text, bm25.SPLIT) == words


def test_only_the_first_words_of_a_query_are_read():
    assert words_without_tensorflow.split_words("a b c", bm25.SPLIT, 2) == [
        "a",
        "b",
    ]


@pytest.mark.parametrize(("word", "grams"), [
    ("good", ["#go", "goo", "ood", "od#"]),
    ("a", ["#a#"]),
    ("酒", ["酒#"]),
    ("上海酒店", ["上海", "海酒", "酒店", "店#"]),
    ("t恤衫", ["#t恤", "恤衫", "衫#"]),
    ("แก้ว", ["#แก", "แก้", "ก้ว", "้ว#"]),
])  # fmt: skip
def test_grams(word, grams):
    assert bm25.letter_grams(word) == grams
