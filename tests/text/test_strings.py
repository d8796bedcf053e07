"""What users hand over as texts, and the batches that are made of it."""

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.text.strings import (
    as_bytes,
    as_strings,
    encode_in_batches,
    score_in_batches,
    slices_of_size,
)

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
