"""Words as ids of a vocabulary, and the vocabulary of texts."""

from collections import Counter

import hypothesis.strategies as st
import pytest
import tensorflow as tf
from hypothesis import given, settings

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.text import (
    WORD_SPLITS,
    Vocabulary,
    WordBatch,
    vocabulary_of,
)
from keras_lstm_dssm.text.word_hashing import (
    distinct_words,
    normalize_and_split,
)
from lstm_dssm_client.signatures import as_bytes
from tests import reference

WORDS = ["bolt", "上海", "x\0", "3"]
TEXTS = st.lists(
    st.lists(st.sampled_from(["Bolt", "hex", "上海", "x\0", "3", ""])).map(
        " ".join
    )
)


def id_rows(batch: WordBatch) -> list[list[int]]:
    """The ids of the words of each row, out of a batch."""
    ids = tf.gather(batch.trigrams, batch.words).numpy()
    return [
        ids[text, : batch.lengths[text]].tolist()
        for text in batch.text_index.numpy()
    ]


def expected_ids(text: str, rule: str, max_words: int | None) -> list[int]:
    words = reference.split(text, rule)[:max_words]
    return [WORDS.index(w) + 1 if w in WORDS else 0 for w in words]


@settings(max_examples=25, deadline=None)
@given(TEXTS, st.sampled_from([None, 2]))
def test_ids_of_words(texts, max_words):
    vocabulary = Vocabulary(WORDS, "space")
    batch = vocabulary.distinct(tf.constant(texts, tf.string), max_words)
    assert id_rows(batch) == [
        expected_ids(text, "space", max_words) for text in texts
    ]
    # Only the words differ from a batch of trigrams.
    trigrams = distinct_words(tf.constant(texts, tf.string), 0, max_words)
    assert batch.lengths.numpy().tolist() == trigrams.lengths.numpy().tolist()
    assert batch.text_index.numpy().tolist() == (
        trigrams.text_index.numpy().tolist()
    )
    assert batch.words.shape == trigrams.words.shape


def test_holds_each_distinct_thing_once():
    texts = ["new bolt", "3 old Bolts, bolt", "", "new BOLT!", "old bolt"]
    batch = Vocabulary(["bolt", "3"]).distinct(tf.constant(texts))
    assert id_rows(batch) == [[0, 1], [2, 0, 0, 1], [0], [0, 1], [0, 1]]
    # All unknown words are one, but "new bolt" and "old bolt" are two texts.
    assert sorted(batch.trigrams.numpy()) == [0, 1, 2]
    assert batch.trigram_index.numpy().tolist() == [0, 1, 2]
    assert batch.word_index.numpy().tolist() == [0, 1, 2]
    assert batch.lengths.numpy().tolist() == [4, 2, 2, 1]
    assert batch.text_index.numpy().tolist() == [1, 0, 3, 1, 2]
    assert batch.trigram_order is None
    assert {field.dtype for field in batch[:-2]} == {tf.int32}


def test_the_same_ids_wherever_it_runs():
    vocabulary = Vocabulary(WORDS, "space")
    texts = tf.constant([b"BOLT 3", b"", b"\xff", "上海 \u00ad".encode(), b"3"])
    want = vocabulary.distinct(texts)
    assert id_rows(want) == [[1, 4], [0], [0], [2], [4]]
    dataset = tf.data.Dataset.from_tensors(texts).map(vocabulary.distinct)
    graph = tf.function(
        vocabulary.distinct, input_signature=[tf.TensorSpec([None], tf.string)]
    )
    for got in (*dataset, graph(texts)):
        assert got.trigram_order is want.trigram_order is None
        for field, expected in zip(got[:-2], want[:-2], strict=True):
            assert field.numpy().tolist() == expected.numpy().tolist()


def test_an_empty_batch_has_one_time_step():
    batch = Vocabulary(WORDS, "space").distinct(tf.constant([], tf.string))
    assert batch.words.shape == [0, 1]
    assert batch.trigrams.shape == batch.text_index.shape == [0]


def test_words_and_size():
    vocabulary = Vocabulary(WORDS, "space")
    assert vocabulary.words == WORDS and len(vocabulary) == 4
    assert vocabulary.joined == "bolt 上海 x\0 3"


@pytest.mark.parametrize(("words", "message"), [
    ([], r"the vocabulary has no words, expected at least 1; vocabulary_o"),
    (["foo", "Foo"],
     r"vocabulary\[1\] is 'Foo', which split='alphanumeric' reads as "
     r"'foo'; expected normalised words, as vocabulary_of\(texts\)"),
    (["a b"], r"vocabulary\[0\] is 'a b', which"),
    (["c#"], r"vocabulary\[0\] is 'c#', which .* reads as 'c'"),
    ([""], r"vocabulary\[0\] is '', which .* reads as '#'"),
    (["#"], r"vocabulary\[0\] is '#', which stands for an empty text"),
    ([b"foo"], r"vocabulary\[0\] is b'foo', which"),
    (["a", "b", "a"], r"the vocabulary has 'a' 2 times, expected differ"),
    ("foo", "expected a list of texts, got one text, 'foo'"),
    ([3], r"text 0 is 3 \(int\), expected str or bytes"),
])  # fmt: skip
def test_wrong_words_are_one_clear_line(words, message):
    with pytest.raises(InputError, match=message) as caught:
        Vocabulary(words)
    assert "\n" not in str(caught.value)


def test_words_of_the_other_split():
    assert Vocabulary(["c#"], "space").words == ["c#"]
    with pytest.raises(InputError, match="split must be one of space, alphan"):
        Vocabulary(["c"], "letters")


TITLES = ["Red hat, red coat", "blue HAT", "", "Ｈａｔ c#", b"\xffblue"]


def test_most_frequent_words_first():
    words = ["hat", "blue", "red", "c", "coat"]
    assert vocabulary_of(TITLES) == words
    assert vocabulary_of(reversed(TITLES)) == words
    assert vocabulary_of(TITLES, min_count=2) == words[:3]
    assert vocabulary_of(TITLES, max_words=2) == words[:2]
    assert vocabulary_of(TITLES, min_count=3, max_words=2) == words[:1]
    assert vocabulary_of(TITLES[:2], split="space") == [
        "red", "blue", "coat", "hat", "hat,",
    ]  # fmt: skip


@pytest.mark.parametrize("rule", WORD_SPLITS)
def test_equals_a_count_in_python(rule):
    """More texts than are split at once."""
    texts = [f"Title {n % 7}, {n % 3}# of-{n}" for n in range(10_500)]
    counts = Counter(w for text in texts for w in reference.split(text, rule))
    words = vocabulary_of(texts, split=rule)
    assert words == sorted(counts, key=lambda word: (-counts[word], word))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.text()), st.sampled_from(WORD_SPLITS))
def test_a_vocabulary_of_any_texts_has_all_their_words(texts, rule):
    strings = tf.constant(as_bytes(["word", *texts]))
    vocabulary = Vocabulary(vocabulary_of(["word", *texts], split=rule), rule)
    rows = normalize_and_split(strings, None, rule).to_list()
    id_lists = id_rows(vocabulary.distinct(strings))
    for words, ids in zip(rows, id_lists, strict=True):
        # "#", as a word, stands for an empty text.
        assert [i == 0 for i in ids] == [word == b"#" for word in words]


@pytest.mark.parametrize(("arguments", "message"), [
    ({"max_words": 0}, "max_words is 0: expected a whole number of 1 or more"),
    ({"min_count": 0}, "min_count is 0: expected a whole number of 1 or more"),
    ({"min_count": 9}, "no word occurs min_count=9 times in the texts;"),
    ({"split": "x"}, "split must be one of"),
    ({"texts": ["", "#"]}, "no word occurs min_count=1 times"),
    ({"texts": "hat"}, "expected a list of texts, got one text, 'hat'"),
    ({"texts": ["hat", 3]}, r"text 1 is 3 \(int\)"),
])  # fmt: skip
def test_wrong_arguments_are_one_clear_line(arguments, message):
    with pytest.raises(InputError, match=message):
        vocabulary_of(**{"texts": TITLES, **arguments})
