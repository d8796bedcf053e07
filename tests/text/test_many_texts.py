"""What users hand over as texts, and the batches that are made of it."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm import LetterTrigrams
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.text import WordBatch, many_texts, normalize_texts
from keras_lstm_dssm.text.many_texts import (
    RepresentedTexts,
    encode_in_batches,
    score_in_batches,
)
from keras_lstm_dssm.text.vocabulary import Vocabulary, VocabularyCache
from keras_lstm_dssm.text.word_hashing import as_strings, distinct_words
from lstm_dssm_client.signatures import as_bytes, slices_of_size
from tests.text.rebuilt import rebuilt

TEXTS = ["hex bolt", "", "glue"]


@pytest.mark.parametrize("texts", [
    TEXTS,
    tuple(TEXTS),
    (text for text in TEXTS),
    np.array(TEXTS),
    np.array(TEXTS, dtype=object),
    [text.encode() for text in TEXTS],
    dict.fromkeys(TEXTS),
    tf.constant(TEXTS),
], ids=lambda texts: type(texts).__name__)  # fmt: skip
def test_any_iterable(texts):
    found = as_strings(texts).numpy().tolist()
    assert found == [b"hex bolt", b"", b"glue"]


def test_lone_surrogates():
    """A command line's raw bytes come back; others have no bytes."""
    assert as_bytes(["caf\udce9", "a\ud800"]) == [b"caf\xe9", b"a?"]
    strings = as_strings(["é", b"\xff", "\ud800", "a\0"])
    assert strings.numpy().tolist() == ["é".encode(), b"\xff", b"?", b"a\0"]
    assert as_strings([]).shape == [0]


@pytest.mark.parametrize(("texts", "message"), [
    (None, "got None"),
    (7, "got 7"),
    (tf.constant([1]), r"got int32 \(1,\)"),
    (tf.constant("one"), r"got string \(\)"),
    (tf.constant([["a"]]), r"got string \(1, 1\)"),
])  # fmt: skip
def test_what_is_no_batch_of_texts(texts, message):
    with pytest.raises(InputError, match=message):
        as_strings(texts)


def test_batches_are_bounded_in_number_and_size():
    """Of 600 texts of 1 KB at most 524 fit in half a megabyte."""
    texts = ["x" * (1000 + number % 2) for number in range(600)]
    batches = []

    def encode(batch: tf.Tensor) -> tf.Tensor:
        batches.append(tf.strings.length(batch).numpy().tolist())
        return tf.cast(tf.strings.length(batch), tf.float32)[:, tf.newaxis]

    for batch_size, sizes in ((2048, [524, 76]), (300, [300, 300])):
        batches.clear()
        found = encode_in_batches(encode, texts, batch_size, progress=False)
        assert found[:, 0].tolist() == [len(text) for text in texts]
        assert [len(batch) for batch in batches] == sizes
    assert list(slices_of_size([], 2, 10)) == []
    assert list(slices_of_size([99, 10, 1], 2, 10)) == [
        slice(0, 1), slice(1, 2), slice(2, 3),
    ]  # fmt: skip


@pytest.mark.parametrize("batch_size", [1, 2, 9])
def test_scores_of_pairs_are_in_the_order_of_the_rows(batch_size):
    batches: list[list[int]] = []
    lengths = [3, 1, 2, 1, 5]

    def score(rows: np.ndarray) -> np.ndarray:
        batches.append(rows.tolist())
        return np.float32(rows) / 2

    scores = score_in_batches(score, lengths, batch_size)
    assert scores.dtype == np.float32
    assert scores.tolist() == [0, 0.5, 1, 1.5, 2]
    # Two threads may take the batches in another order.
    assert sorted(batches, key=lambda rows: (-lengths[rows[0]], rows)) == [
        [4, 0, 2, 1, 3][start : start + batch_size]
        for start in range(0, 5, batch_size)
    ]


def test_no_rows_and_no_batch_size():
    scores = score_in_batches(lambda rows: rows, [], 4)
    assert (scores.dtype, scores.shape) == (np.float32, (0,))
    with pytest.raises(
        InputError,
        match="batch_size is 0: expected a whole number of 1 or more",
    ):
        score_in_batches(lambda rows: rows, [1], 0)


BATCHES = [
    [b"hex bolt", b"Hex  BOLT", b"steel hex-bolts 3/8 in.", b"hex bolt", b""],
    [b"\xff\xfe broken", "Größe ﬁne".encode(), b"bolt", b"  ", b"steel"],
    ["日本 bolt".encode(), b"a" * 2000, b"one two three four five six", b"#"],
    [b"bolts", b"hex bolt", b"", b"steel hex-bolts 3/8 in.", b"bolt"],
    [],
]
RULES = [
    (0, None, "space"), (0, 3, "space"), (100, 128, "alphanumeric"),
    (100, 2, "stems"),
]  # fmt: skip


def check(batch: WordBatch, texts: tf.Tensor, rules: tuple[Any, ...]) -> None:
    """Asserts that a batch is that of `distinct_words`, with an order."""
    expected = distinct_words(texts, *rules)
    *fields, order, untrained = batch
    assert expected.trigram_order is expected.untrained is untrained is None
    names = batch._fields[:-2]
    for name, field, value in zip(names, fields, expected[:-2], strict=True):
        np.testing.assert_array_equal(field, value, err_msg=name)
        assert field.dtype == value.dtype, name
    assert order is not None
    np.testing.assert_array_equal(order, tf.argsort(expected.trigram_index))


@pytest.mark.parametrize("rules", RULES)
def test_equals_the_layer_in_every_pass(rules):
    layer = LetterTrigrams("ascii", *rules)
    cache = layer.cache()
    for _ in range(2):
        for texts in BATCHES:
            strings = tf.constant(texts, tf.string)
            batch = cache.distinct(strings)
            check(batch, strings, rules)
            assert rebuilt(batch) == layer(strings).to_list()


@pytest.mark.parametrize("max_words", [None, 2])
@pytest.mark.parametrize("max_bytes", [1000, 60])
def test_a_cache_equals_the_vocabulary_in_every_pass(max_words, max_bytes):
    vocabulary = Vocabulary(["bolt", "hex", "grösse", "3"], "alphanumeric")
    cache = VocabularyCache(vocabulary, max_words, max_bytes=max_bytes)
    for _ in range(2):
        for texts in BATCHES:
            strings = tf.constant(texts, tf.string)
            *fields, order, _ = cache.distinct(strings)
            *expected, _, _ = vocabulary.distinct(strings, max_words)
            for field, value in zip(fields, expected, strict=True):
                np.testing.assert_array_equal(field, value)
                assert field.dtype == value.dtype
            np.testing.assert_array_equal(order, expected[1])


def test_a_text_is_hashed_once(monkeypatch):
    cache = many_texts.HashedTextCache()
    strings = tf.constant(BATCHES[0])
    cache.distinct(strings)
    monkeypatch.setattr(cache, "_normalize", None)
    check(cache.distinct(strings[::-1]), strings[::-1], RULES[0])
    with pytest.raises(TypeError):  # a new one
        cache.distinct(tf.constant(["new"]))


def test_a_full_cache_stores_no_more():
    cache = many_texts.HashedTextCache(max_bytes=60)
    for number in range(20):
        strings = tf.constant([f"text {number}", "bolt", f"again {number}"])
        check(cache.distinct(strings), strings, RULES[0])
    assert len(cache._id_of_text) == 9
    known = tf.constant(["bolt", "text 1"])
    cache._uncached = None  # which batches of known texts do not need
    check(cache.distinct(known), known, RULES[0])


def test_in_parallel_in_a_dataset():
    """Several threads of `tf.data` hash texts that are not cached yet."""
    cache = many_texts.HashedTextCache(oov_buckets=7)
    texts = [f"word{n % 23} bolt{n % 7}" for n in range(400)]
    dataset = tf.data.Dataset.from_tensor_slices(texts).batch(9).repeat(2)
    hashed = dataset.map(cache.distinct, num_parallel_calls=4)
    for strings, batch in zip(dataset, hashed, strict=True):
        check(batch, strings, (7, None, "space"))


@pytest.mark.parametrize("split", ["space", "alphanumeric", "stems"])
def test_normalized_text_cache(split):
    normal = many_texts.NormalizedTextCache(split, max_bytes=30)
    for _ in range(2):
        for texts in BATCHES:
            strings = tf.constant(texts, tf.string)
            np.testing.assert_array_equal(
                normal(strings), normalize_texts(strings, None, split)
            )
    assert len(normal._normalized) < 9
    two_columns = tf.constant([BATCHES[0][:2], BATCHES[1][:2]])
    assert normal(two_columns).shape == (2, 2)
    assert normal(two_columns)[0, 1] == normal(tf.constant(["Hex  BOLT"]))[0]


def test_normalized_texts_are_cached(monkeypatch):
    normal = many_texts.NormalizedTextCache()
    normal(tf.constant(["Bolt"]))
    monkeypatch.setattr(normal, "_normalize", None)
    assert normal(tf.constant(["Bolt"] * 3)).numpy().tolist() == [b"bolt"] * 3
    with pytest.raises(TypeError):
        normal(tf.constant(["Nut"]))


PROGRAM = """
import tensorflow as tf
from keras_lstm_dssm.text.many_texts import HashedTextCache

texts = tf.data.Dataset.range(10_000).map(
    lambda i: tf.strings.as_string(tf.range(i * 500, i * 500 + 500))
)
hashed = texts.map(HashedTextCache().distinct, num_parallel_calls=2)
iterator = iter(hashed.prefetch(2))
print(next(iterator).text_index.shape[0])
1 / 0
"""


def test_the_process_ends_while_texts_are_hashed():
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True,
        timeout=60,
    )  # fmt: skip
    assert process.returncode == 1, process.stderr
    assert "ZeroDivisionError" in process.stderr
    assert process.stdout == "500\n"
    # Calls that come too late are no errors that TensorFlow logs.
    assert "StopIteration" not in process.stderr


def test_values_and_errors_of_a_data_function():
    def halves(values: np.ndarray) -> list[np.ndarray]:
        return [values // 2, values % 2]

    function = many_texts.DataFunction(halves, [tf.int64] * 2)
    data = tf.data.Dataset.range(5).map(function, num_parallel_calls=2)
    assert [*data.as_numpy_iterator()] == [
        (0, 0), (0, 1), (1, 0), (1, 1), (2, 0),
    ]  # fmt: skip
    wrong = many_texts.DataFunction(lambda value: 1 // value.item(), tf.int64)
    with pytest.raises(ZeroDivisionError):
        wrong(tf.constant(0, tf.int64))
    assert wrong(tf.constant(1, tf.int64)).numpy() == 1


def lengths_times(weight, calls):
    """Represents a text by one row for each word: its length times `weight`."""

    def represent(texts):
        calls.append(texts)
        scale = weight.numpy()[0]
        return [scale * np.array([[len(w)] for w in t.split()]) for t in texts]

    return represent


def test_represented_texts_are_cached_until_a_weight_changes():
    weight, calls = tf.Variable([2.0, 0.0]), []
    represented = RepresentedTexts(lengths_times(weight, calls), [weight])
    texts = [b"hex bolt", b"nut", b"hex bolt"]
    assert [rows.tolist() for rows in represented(texts)] == [
        [[6], [8]],
        [[6]],
        [[6], [8]],
    ]
    assert represented([b"nut", b"glue"])[1].tolist() == [[8]]
    assert calls == [[b"hex bolt", b"nut"], [b"glue"]]
    changes = [
        lambda: weight.assign([3.0, 0.0]),
        lambda: weight.scatter_sub(tf.IndexedSlices([1.0], [0])),
        tf.function(lambda: weight.assign_add([1.0, 0.0]), autograph=False),
    ]
    for expected, change in zip([9, 6, 9], changes, strict=True):
        change()
        assert represented([b"nut"])[0].tolist() == [[expected]]
        del calls[:]
        represented([b"nut"])
        assert not calls


def test_a_full_cache_of_represented_texts_represents_further_texts():
    weight, calls = tf.Variable([1.0]), []
    represented = RepresentedTexts(
        lengths_times(weight, calls), [weight], max_bytes=16
    )
    for _ in range(2):
        found = represented([b"hex bolt", b"nut"])
        assert [rows.ravel().tolist() for rows in found] == [[3, 4], [3]]
        assert represented([b"glue"])[0].tolist() == [[4]]
    assert calls == [[b"hex bolt", b"nut"], [b"glue"], [b"hex bolt", b"nut"]]
