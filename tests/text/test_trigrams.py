import itertools

import hypothesis.strategies as st
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text as tf_text
from hypothesis import given, settings

from keras_lstm_dssm.text import LETTERS, TRIGRAMS, trigram_ids
from tests import reference

BUCKETS = 8192
KNOWN = ["".join(triple) for triple in itertools.product(LETTERS, repeat=3)]
PLACE = {trigram.encode(): code for code, trigram in enumerate(KNOWN)}


def rows(words: list[str], oov_buckets: int = 0) -> list[list[int]]:
    """The ids of each word."""
    ids, word = trigram_ids(tf.constant(words, tf.string), oov_buckets)
    ragged = tf.RaggedTensor.from_value_rowids(ids, word, nrows=len(words))
    return ragged.to_list()


def slow_rows(words: list[str]) -> list[list[int]]:
    """The reference path: `tf_text.ngrams`, then looked up."""
    wrapped = tf.strings.unicode_split(
        tf.constant([f"#{word}#" for word in words]), "UTF-8"
    )
    ngrams = tf_text.ngrams(
        wrapped, 3, reduction_type=tf_text.Reduction.STRING_JOIN,
        string_separator="",
    )  # fmt: skip
    return [[PLACE[ngram] for ngram in row] for row in ngrams.to_list()]


def test_codes_by_hand() -> None:
    assert LETTERS == reference.LETTERS
    assert rows(["a", "#"]) == [[1 * 37], [0]]
    g, o, d = 7, 15, 4
    assert rows(["good"]) == [
        [
            g * 37 + o,
            (g * 37 + o) * 37 + o,
            (o * 37 + o) * 37 + d,
            (o * 37 + d) * 37,
        ]
    ]


def test_exact_codes_do_not_collide() -> None:
    """The middle trigram of the word xyz is xyz: all 50,653 of them."""
    ids, word = trigram_ids(tf.constant(KNOWN))
    assert TRIGRAMS == len(KNOWN) == 50_653
    np.testing.assert_array_equal(ids[1::3], np.arange(TRIGRAMS))
    np.testing.assert_array_equal(word, np.repeat(np.arange(TRIGRAMS), 3))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1)))
def test_equals_the_plain_transcription(words: list[str]) -> None:
    """Whatever is no letter counts as `#`: NUL, emoji, every script."""
    assert rows(words) == [reference.trigrams(word) for word in words]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(LETTERS, min_size=1), min_size=1))
def test_equals_tf_text_ngrams(words: list[str]) -> None:
    assert rows(words) == slow_rows(words)
    assert rows(words, BUCKETS) == rows(words)  # letters keep their codes


def test_of_no_words_there_are_no_trigrams() -> None:
    assert rows([]) == rows([], BUCKETS) == []


@pytest.mark.parametrize("word", ["中", "hôtel", "a\0b", "go-to", "😀"])
def test_only_trigrams_with_another_letter_go_to_the_buckets(
    word: str,
) -> None:
    (found,), (exact,) = rows([word], BUCKETS), rows([word])
    wrapped = f"#{word}#"
    for place, (code, folded) in enumerate(zip(found, exact, strict=True)):
        if set(wrapped[place : place + 3]) <= set(LETTERS):
            assert code == folded
        else:
            assert TRIGRAMS <= code < TRIGRAMS + BUCKETS


def test_words_of_other_scripts_stay_distinct() -> None:
    """300 words of each script: no two share all their trigrams.

    In the paper's alphabet all of one length are one word: `###` `###` ...
    """
    scripts = [(0x4E00, 2000), (0x0430, 32), (0x0627, 20)]  # Han, Cyr., Arab.
    random = np.random.default_rng(0)
    words = sorted(
        {
            "".join(chr(first + x) for x in random.integers(0, size, length))
            for first, size in scripts
            for length in random.integers(2, 7, 300)
        }
    )
    hashed = rows(words, BUCKETS)
    assert len(words) > 890
    assert len({tuple(row) for row in rows(words)}) == 5
    assert len({tuple(sorted(row)) for row in hashed}) == len(words)
    # Single trigrams collide about as often as by a perfect hash function.
    triples = {
        (f"#{word}#"[place : place + 3], code)
        for word, row in zip(words, hashed, strict=True)
        for place, code in enumerate(row)
    }
    used = len({code for _, code in triples})
    expected = BUCKETS * (1 - (1 - 1 / BUCKETS) ** len(triples))
    assert used == pytest.approx(expected, rel=0.03)
