"""Batches of words: each distinct text, word and trigram once."""

import hypothesis.strategies as st
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings

from keras_lstm_dssm import LetterTrigrams
from keras_lstm_dssm.text import WORD_SPLITS, word_batch
from keras_lstm_dssm.text.word_hashing import MAX_LETTERS
from lstm_dssm_client.words import split_words
from tests.text.rebuilt import rebuilt

TEXTS = st.lists(
    st.lists(st.sampled_from(["a", "Go", "good", "上海", "x\0", ""])).map(
        " ".join
    )
)


@settings(max_examples=25, deadline=None)
@given(TEXTS, st.sampled_from([0, 8192]), st.sampled_from([None, 2]))
def test_holds_what_letter_trigrams_gives(texts, oov_buckets, max_words):
    layer = LetterTrigrams("ascii", oov_buckets, max_words)
    assert rebuilt(layer.distinct(texts)) == layer(texts).to_list()


def test_holds_each_distinct_thing_once():
    batch = word_batch.distinct_words(
        tf.constant(["go good", "go", "go good", "", "Go!"])
    )
    assert len(set(batch.trigrams.numpy())) == len(batch.trigrams) == 7
    assert batch.words.numpy().tolist() == [[0, 1], [0, 0], [2, 0], [3, 0]]
    assert batch.lengths.numpy().tolist() == [2, 1, 1, 1]
    assert batch.text_index.numpy().tolist() == [0, 1, 0, 2, 3]
    assert batch.word_index.numpy().tolist() == [0, 0, 1, 1, 1, 1, 2, 3, 3, 3]
    assert batch.trigram_order is None
    assert {field.dtype for field in batch[:-2]} == {tf.int32}


@pytest.mark.parametrize(("split", "text_index"), [
    ("space", [0, 1, 0, 1, 2, 3, 3]), ("alphanumeric", [0, 1, 0, 1, 0, 2, 2]),
])  # fmt: skip
def test_texts_of_the_same_words_are_one(split, text_index):
    """In-batch negatives compare `text_index`, so equal words are none."""
    batch = word_batch.distinct_words(
        tf.constant(
            ["Angle bracket", "BOLT", " ANGLE  bracket", "bolt",
             "angle-bracket", "", " "]
        ),
        split=split,
    )  # fmt: skip
    assert batch.text_index.numpy().tolist() == text_index
    assert len(batch.lengths) == max(text_index) + 1


def test_long_texts_take_bounded_time_and_memory():
    """In a graph, as exported: the size of the result shows the bound."""
    hashed = tf.function(lambda texts: word_batch.distinct_words(texts, 0, 128))
    texts = ["x" * (1 << 20), "ab " * (1 << 18), "\ufb03" * (1 << 18)]
    batch = hashed(tf.constant(texts))
    assert batch.lengths.numpy().tolist() == [128, 1, 1]
    assert len(batch.trigram_index) <= 2 * MAX_LETTERS + 2
    with_all = word_batch.distinct_words(tf.constant(["ab " * 1000]))
    assert with_all.lengths.numpy().tolist() == [1000]


def test_of_no_texts_has_one_time_step_and_no_rows():
    batch = word_batch.distinct_words(tf.constant([], tf.string))
    assert [field.shape.as_list() for field in batch[:-2]] == [
        [0], [0], [0], [0, 1], [0], [0],
    ]  # fmt: skip


def test_graphs_share_one_trace_of_each_setting():
    traces = []

    @word_batch.traced_once
    def lengths(texts: tf.Tensor, unit: str = "BYTE") -> tf.Tensor:
        traces.append(unit)
        return tf.strings.length(texts, unit)

    for texts, unit, expected in (
        (["bolt"], "BYTE", [4]),
        (["\u03bb", "a b"], "BYTE", [2, 3]),
        (["\u03bb"], "UTF8_CHAR", [1]),
    ):
        batches = tf.data.Dataset.from_tensors(texts).map(
            lambda batch, unit=unit: lengths(batch, unit)
        )
        assert next(iter(batches)).numpy().tolist() == expected
        in_graph = tf.function(lambda batch, unit=unit: lengths(batch, unit))
        assert in_graph(tf.constant(texts)).numpy().tolist() == expected
    assert traces == ["BYTE", "UTF8_CHAR"]
    assert lengths(tf.constant(["a"])).numpy() == [1]
    assert traces == ["BYTE", "UTF8_CHAR", "BYTE"]


ONE_TEXT = [
    "hotels in shanghai", "a", "", " \u3000 ", "bolt bolt  hex\tbolt",
    b"\xff\xfe broken", "nul\x00inside", "2x4 wood-screw, 3/4in.",
    "\ufdfa" * 31, "1½" * 31, "上海 酒店 \U0001f600", "STRASSE straße",
]  # fmt: skip


@pytest.mark.parametrize("split", WORD_SPLITS)
@pytest.mark.parametrize("oov_buckets", [0, 64])
def test_one_short_text_has_the_words_of_a_batch(oov_buckets, split):
    layer = LetterTrigrams(oov_buckets=oov_buckets, split=split)
    for text in ONE_TEXT:
        texts = tf.constant([text])
        assert layer.is_short(texts)
        expected, batch = layer.distinct(texts), layer.single(texts)
        assert rebuilt(batch) == rebuilt(expected) == layer(texts).to_list()
        assert batch.trigram_order is expected.trigram_order is None
        for field, other in zip(batch[:-2], expected[:-2], strict=True):
            assert field.dtype == other.dtype == tf.int32
        assert (np.diff(batch.word_index) >= 0).all()


def test_which_text_is_short():
    def is_short(texts: list[str], max_words: int | None) -> bool:
        strings = tf.constant(texts, tf.string, [len(texts)])
        return bool(word_batch.is_single_short_text(strings, max_words))

    assert is_short(["x" * 127], None) and not is_short(["x" * 128], None)
    assert is_short(["a b c"], 8) and not is_short(["a b c"], 7)
    phrases = ["\ufdfa" * 31]
    assert len(split_words(phrases[0], "space")) == 124
    assert is_short(phrases, 125) and not is_short(phrases, 124)
    assert not is_short(["a", "b"], None)
    assert not is_short([], None)
