"""One short text: its words and trigrams are those of a batch."""

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.text import WORD_SPLITS, WordBatch
from keras_lstm_dssm.text.word_batch import (
    distinct_words,
    hash_single_text,
    is_single_short_text,
)

TEXTS = [
    "hotels in shanghai",
    "a",
    "",
    " \u3000 ",
    "bolt bolt  hex\tbolt",
    b"\xff\xfe broken",
    "nul\x00inside",
    "2x4 wood-screw, 3/4in.",
    "\ufdfa" * 42,
    "\u4e0a\u6d77 \u9152\u5e97 \U0001f600",
    "STRASSE stra\u00dfe",
]


def trigrams_by_word(batch: WordBatch) -> list[list[int]]:
    """Lists the letter-trigram ids of each word of a batch's first text."""
    row = int(batch.text_index[0])
    words = batch.words[row, : int(batch.lengths[row])].numpy()
    ids = tf.gather(batch.trigrams, batch.trigram_index).numpy()
    of_word = batch.word_index.numpy()
    return [ids[of_word == word].tolist() for word in words]


@pytest.mark.parametrize("split", WORD_SPLITS)
@pytest.mark.parametrize("oov_buckets", [0, 64])
def test_words_are_those_of_a_batch(oov_buckets, split):
    for text in TEXTS:
        texts = tf.constant([text])
        assert is_single_short_text(texts, max_words=128)
        expected = distinct_words(texts, oov_buckets, 128, split)
        batch = hash_single_text(texts, oov_buckets, split)
        assert trigrams_by_word(batch) == trigrams_by_word(expected)
        assert batch.trigram_order is expected.trigram_order is None
        for field, other in zip(batch[:-2], expected[:-2], strict=True):
            assert field.dtype == other.dtype == tf.int32
        assert (np.diff(batch.word_index) >= 0).all()


def test_what_is_short():
    def is_short(texts: list[str], max_words: int | None) -> bool:
        strings = tf.constant(texts, tf.string, [len(texts)])
        return bool(is_single_short_text(strings, max_words))

    assert is_short(["x" * 127], None) and not is_short(["x" * 128], None)
    assert is_short(["a b c"], 6) and not is_short(["a b c"], 5)
    assert not is_short(["a", "b"], None)
    assert not is_short([], None)
