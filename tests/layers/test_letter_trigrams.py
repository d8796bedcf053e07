from typing import Any

import pytest
import tensorflow as tf

from keras_lstm_dssm import InputError, LetterTrigrams
from keras_lstm_dssm.layers.letter_trigrams import as_strings

TEXTS = ["Hotels in Shanghai", "", "a  b", "上海 hotel", "hotels"]


@pytest.fixture(params=[0, 8192])
def layer(request) -> LetterTrigrams:
    return LetterTrigrams(oov_buckets=request.param)


@pytest.fixture
def expected(layer) -> list[Any]:
    return layer(TEXTS).to_list()


def test_called_directly(expected):
    assert expected[2] == [[37], [74]]
    assert [len(text) for text in expected] == [3, 1, 2, 2, 1]
    assert expected[0][0] == expected[4][0]


def test_in_a_dataset_before_batching(layer, expected):
    dataset = tf.data.Dataset.from_tensor_slices(TEXTS)
    rows = dataset.map(lambda text: layer(text[tf.newaxis]))
    assert [row.to_list()[0] for row in rows] == expected


def test_in_a_dataset_after_batching(layer, expected):
    dataset = tf.data.Dataset.from_tensor_slices(TEXTS).batch(2).map(layer)
    assert [row for batch in dataset for row in batch.to_list()] == expected


def test_in_a_function(layer, expected):
    signature = [tf.TensorSpec([None], tf.string)]
    function = tf.function(layer, input_signature=signature)
    assert function(tf.constant(TEXTS)).to_list() == expected
    assert function(tf.constant([], tf.string)).to_list() == []


def test_in_a_saved_model(layer, expected, tmp_path):
    module = tf.Module()
    signature = [tf.TensorSpec([None], tf.string)]
    module.hash = tf.function(layer, input_signature=signature)
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    assert loaded.hash(tf.constant(TEXTS)).to_list() == expected


def test_max_words():
    assert LetterTrigrams(max_words=1)(["a b", "b"]).to_list() == [
        [[37]], [[74]],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"alphabet": "greek"}, "alphabet must be 'ascii', not 'greek'"),
        ({"oov_buckets": -1}, "oov_buckets must be >= 0, not -1"),
        ({"max_words": 0}, "max_words must be at least 1 or None, not 0"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(InputError, match=message):
        LetterTrigrams(**arguments)


def test_strings_as_they_are():
    strings = as_strings(["é", b"\xff", "\ud800", "a\0"])
    assert strings.numpy().tolist() == ["é".encode(), b"\xff", b"?", b"a\0"]
    assert as_strings([]).shape == [0]
