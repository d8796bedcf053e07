"""Cached hashes and normalised texts equal those computed anew."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm import LetterTrigrams
from keras_lstm_dssm.text import WordBatch, caches, normalize_texts
from keras_lstm_dssm.text.word_batch import distinct_words
from tests.text.rebuilt import rebuilt

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


def test_a_text_is_hashed_once(monkeypatch):
    cache = caches.HashedTextCache()
    strings = tf.constant(BATCHES[0])
    cache.distinct(strings)
    monkeypatch.setattr(cache, "_normalize", None)
    check(cache.distinct(strings[::-1]), strings[::-1], RULES[0])
    with pytest.raises(TypeError):  # a new one
        cache.distinct(tf.constant(["new"]))


def test_a_full_cache_stores_no_more():
    cache = caches.HashedTextCache(max_bytes=60)
    for number in range(20):
        strings = tf.constant([f"text {number}", "bolt", f"again {number}"])
        check(cache.distinct(strings), strings, RULES[0])
    assert len(cache._text_of_bytes) == 9
    known = tf.constant(["bolt", "text 1"])
    cache._hash = None  # which batches of known texts do not need
    check(cache.distinct(known), known, RULES[0])


def test_in_parallel_in_a_dataset():
    """Several threads of `tf.data` hash texts that are not cached yet."""
    cache = caches.HashedTextCache(oov_buckets=7)
    texts = [f"word{n % 23} bolt{n % 7}" for n in range(400)]
    dataset = tf.data.Dataset.from_tensor_slices(texts).batch(9).repeat(2)
    hashed = dataset.map(cache.distinct, num_parallel_calls=4)
    for strings, batch in zip(dataset, hashed, strict=True):
        check(batch, strings, (7, None, "space"))


@pytest.mark.parametrize("split", ["space", "alphanumeric", "stems"])
def test_normalized_text_cache(split):
    normal = caches.NormalizedTextCache(split, max_bytes=30)
    for _ in range(2):
        for texts in BATCHES:
            strings = tf.constant(texts, tf.string)
            np.testing.assert_array_equal(
                normal(strings), normalize_texts(strings, None, split)
            )
    assert len(normal._known) < 9
    two_columns = tf.constant([BATCHES[0][:2], BATCHES[1][:2]])
    assert normal(two_columns).shape == (2, 2)
    assert normal(two_columns)[0, 1] == normal(tf.constant(["Hex  BOLT"]))[0]


def test_normalized_texts_are_cached(monkeypatch):
    normal = caches.NormalizedTextCache()
    normal(tf.constant(["Bolt"]))
    monkeypatch.setattr(normal, "_normalize", None)
    assert normal(tf.constant(["Bolt"] * 3)).numpy().tolist() == [b"bolt"] * 3
    with pytest.raises(TypeError):
        normal(tf.constant(["Nut"]))


PROGRAM = """
import tensorflow as tf
from keras_lstm_dssm.text.caches import HashedTextCache

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

    function = caches.DataFunction(halves, [tf.int64] * 2)
    data = tf.data.Dataset.range(5).map(function, num_parallel_calls=2)
    assert [*data.as_numpy_iterator()] == [
        (0, 0), (0, 1), (1, 0), (1, 1), (2, 0),
    ]  # fmt: skip
    wrong = caches.DataFunction(lambda value: 1 // value.item(), tf.int64)
    with pytest.raises(ZeroDivisionError):
        wrong(tf.constant(0, tf.int64))
    assert wrong(tf.constant(1, tf.int64)).numpy() == 1
