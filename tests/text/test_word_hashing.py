"""Texts to normalised words, and words to letter trigrams."""

import itertools

import hypothesis.strategies as st
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings

from keras_lstm_dssm import LetterTrigrams
from keras_lstm_dssm.text import (
    LETTERS,
    WORD_SPLITS,
    normalize,
    normalize_texts,
    word_hashing,
)
from keras_lstm_dssm.text.word_hashing import (
    MAX_BYTES_PER_WORD,
    MAX_LETTERS,
    TRIGRAMS,
    normalize_and_split,
    trigram_ids,
)
from lstm_dssm_client import words as words_in_python
from tests import reference
from tests.text.rebuilt import rebuilt

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


def split(
    *texts: str | bytes, max_words: int | None = None, rule: str = "space"
) -> list[list[str]]:
    rows = normalize_and_split(tf.constant(texts, tf.string), max_words, rule)
    return [[word.decode() for word in row] for row in rows.to_list()]


@pytest.mark.parametrize(("text", "expected"), [
    ("Hotels in  SHANGHAI\t2\n", ["hotels", "in", "shanghai", "2"]),
    ("ﬁne ｆｕｌｌ", ["fine", "full"]),  # NFKC
    ("Straße ΟΔΟΣ", ["strasse", "οδοσ"]),  # case folding, not lowering
    ("so\u00adft ze\u200dro", ["soft", "zero"]),  # invisible: dropped
    ("a\u2003b\u3000c\x85d\u1680e\u2028f\u2029g", [*"abcdefg"]),
    ("上海 酒店", ["上海", "酒店"]),
    ("فنادق في", ["فنادق", "في"]),
    ("ok 😀", ["ok", "😀"]),
    ("a\0b", ["a\0b"]),
    (b"\xff\xfe hi \xc3", ["\ufffd\ufffd", "hi", "\ufffd"]),
    ("", ["#"]),
    (" \t\u00ad ", ["#"]),
])  # fmt: skip
def test_splits_normalises_and_folds(text, expected):
    assert split(text) == [expected]


@pytest.mark.parametrize("rule", WORD_SPLITS)
@settings(max_examples=100, deadline=None)
@given(texts=st.lists(TEXT, max_size=5))
def test_equals_the_plain_transcription(rule, texts):
    expected = [reference.split(text, rule) for text in texts]
    assert split(*texts, rule=rule) == expected
    assert normalize(texts, rule) == [" ".join(row) for row in expected]


def test_letters_and_digits():
    text = "Angle-Bracket, 1/2 in. (12 Gauge) C++ cafe\u0301 फ़ोन _x_"
    assert split(text, rule="alphanumeric") == [
        "angle bracket 1 2 in 12 gauge c café फ़ोन x".split()
    ]
    assert split("?! -", rule="alphanumeric") == [["#"]]


def test_stems_of_all_words_of_a_text():
    text = "Lighting: batteries (boxes) of exceeded churches, buses & s"
    assert split(text, rule="stems") == [
        "light battery box of exceed church buse s".split()
    ]
    forms = ["hinged lights", "hinges lighted", "Hing light"]
    assert split(*forms, rule="stems") == [
        ["hing", "light"], ["hinge", "light"], ["hing", "light"],
    ]  # fmt: skip


def test_keeps_10_000_words_or_the_first_max_words():
    text = " ".join(f"w{place}" for place in range(10_000))
    assert split(text) == [text.split()]
    assert split(text, "a", "", max_words=2) == [["w0", "w1"], ["a"], ["#"]]


def test_normalizes_alike_as_a_list_and_in_a_dataset():
    texts = ["ANGLE \t bracket", "angle-bracket", "", "?!", b"\xff"]
    expected = {
        "space": ["angle bracket", "angle-bracket", "#", "?!", "\ufffd"],
        "alphanumeric": ["angle bracket", "angle bracket", "#", "#", "#"],
        "stems": ["angle bracket", "angle bracket", "#", "#", "#"],
    }
    for rule, lines in expected.items():
        assert normalize(texts, rule) == lines
        dataset = tf.data.Dataset.from_tensor_slices(texts).batch(2)
        batches = dataset.map(lambda x, s=rule: normalize_texts(x, None, s))
        found = [text.decode() for batch in batches for text in batch.numpy()]
        assert found == lines


def test_max_words_bounds_the_bytes_of_a_text():
    limit = 2 * MAX_BYTES_PER_WORD
    assert split("a" * 1000 + " b", max_words=2) == [["a" * limit]]
    assert split(" " * limit + "b", max_words=2) == [["#"]]
    # A letter that is cut in two is replaced, as any invalid UTF-8 is.
    cut = "a" * (limit - 1) + "\u00e9"
    assert split(cut, max_words=2) == [["a" * (limit - 1) + "\ufffd"]]
    assert split("a" * 9000 + " b") == [["a" * 9000, "b"]]


def test_of_no_texts_there_are_no_words():
    assert split() == []


BUCKETS = 8192
KNOWN = ["".join(triple) for triple in itertools.product(LETTERS, repeat=3)]


def rows(words: list[str], oov_buckets: int = 0) -> list[list[int]]:
    """The ids of each word."""
    ids, word = trigram_ids(tf.constant(words, tf.string), oov_buckets)
    ragged = tf.RaggedTensor.from_value_rowids(ids, word, nrows=len(words))
    return ragged.to_list()


def test_codes_by_hand():
    assert LETTERS == reference.LETTERS
    assert rows(["a", "#"]) == [[1 * 37], [0]]
    g, o, d = 7, 15, 4
    assert rows(["good"]) == [
        [
            g * 37 + o, (g * 37 + o) * 37 + o, (o * 37 + o) * 37 + d,
            (o * 37 + d) * 37,
        ]
    ]  # fmt: skip


def test_exact_codes_do_not_collide():
    """The middle trigram of the word xyz is xyz: all 50,653 of them."""
    ids, word = trigram_ids(tf.constant(KNOWN))
    assert TRIGRAMS == len(KNOWN) == 50_653
    np.testing.assert_array_equal(ids[1::3], np.arange(TRIGRAMS))
    np.testing.assert_array_equal(word, np.repeat(np.arange(TRIGRAMS), 3))
    hashed, _ = trigram_ids(tf.constant(KNOWN), BUCKETS)
    np.testing.assert_array_equal(hashed, ids)  # letters keep their codes


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1)),
    st.sampled_from([0, BUCKETS]),
)
def test_trigrams_equal_the_plain_transcription(words, oov_buckets):
    """Also with what is no letter: NUL, emoji, every script."""
    expected = [reference.trigrams(word, oov_buckets) for word in words]
    assert rows(words, oov_buckets) == expected


def test_of_no_words_there_are_no_trigrams():
    assert rows([]) == rows([], BUCKETS) == []


@pytest.mark.parametrize("letter", ["a", "中"])
def test_only_the_first_letters_of_a_word_are_hashed(letter):
    longest = rows([letter * MAX_LETTERS], BUCKETS)
    assert len(longest[0]) == MAX_LETTERS
    assert rows([letter * 100_000], BUCKETS) == longest


@pytest.mark.parametrize("word", ["中", "hôtel", "a\0b", "go-to", "😀"])
def test_only_trigrams_with_another_letter_go_to_the_buckets(word):
    (found,), (exact,) = rows([word], BUCKETS), rows([word])
    wrapped = f"#{word}#"
    for place, (code, folded) in enumerate(zip(found, exact, strict=True)):
        if set(wrapped[place : place + 3]) <= set(LETTERS):
            assert code == folded
        else:
            assert TRIGRAMS <= code < TRIGRAMS + BUCKETS


def test_words_of_other_scripts_stay_distinct():
    """In the paper's alphabet all of one length are one word, `###` `###`."""
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
    batch = word_hashing.distinct_words(
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
    batch = word_hashing.distinct_words(
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
    hashed = tf.function(
        lambda texts: word_hashing.distinct_words(texts, 0, 128)
    )
    texts = ["x" * (1 << 20), "ab " * (1 << 18), "\ufb03" * (1 << 18)]
    batch = hashed(tf.constant(texts))
    assert batch.lengths.numpy().tolist() == [128, 1, 1]
    assert len(batch.trigram_index) <= 2 * MAX_LETTERS + 2
    with_all = word_hashing.distinct_words(tf.constant(["ab " * 1000]))
    assert with_all.lengths.numpy().tolist() == [1000]


def test_of_no_texts_has_one_time_step_and_no_rows():
    batch = word_hashing.distinct_words(tf.constant([], tf.string))
    assert [field.shape.as_list() for field in batch[:-2]] == [
        [0], [0], [0], [0, 1], [0], [0],
    ]  # fmt: skip


def test_graphs_share_one_trace_of_each_setting():
    traces = []

    @word_hashing.traced_once
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
        return bool(word_hashing.is_single_short_text(strings, max_words))

    assert is_short(["x" * 127], None) and not is_short(["x" * 128], None)
    assert is_short(["a b c"], 8) and not is_short(["a b c"], 7)
    phrases = ["\ufdfa" * 31]
    assert len(words_in_python.split_words(phrases[0], "space")) == 124
    assert is_short(phrases, 125) and not is_short(phrases, 124)
    assert not is_short(["a", "b"], None)
    assert not is_short([], None)
