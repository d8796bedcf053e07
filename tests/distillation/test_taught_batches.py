"""TaughtBatches: the teacher's vectors that are added to a batch."""

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm import InputError
from keras_lstm_dssm.distillation.teacher_vectors import (
    TaughtBatches,
    TeacherVectors,
)

TEACHER = TeacherVectors(["bolt", "hex bolt", "wood glue"], np.eye(3))


def test_a_row_has_its_query_its_title_and_its_negatives():
    batches = tf.data.Dataset.from_tensors(
        (
            ["bolt", "hx", "lamp"],
            ["hex bolt", "hex\u00a0 bolt", "lamp"],
            {"negatives": [["wood glue"], ["none"], ["bolt"]], "log_q": [0.0]},
        )
    )
    texts = ["bolt", "hex\u00a0 bolt", "wood glue", "none"]
    ((query, title, extras),) = TaughtBatches(TEACHER, texts).attach(batches)
    assert query.numpy().tolist() == [b"bolt", b"hx", b"lamp"]
    assert title.numpy()[0] == b"hex bolt"
    assert sorted(extras) == ["log_q", "negatives", "teacher", "teacher_texts"]
    # "hx" was made from its title; nothing is known of "lamp" or "none".
    np.testing.assert_array_equal(
        extras["teacher_texts"], [[0, 1, 2], [1, 1, -1], [-1, -1, 0]]
    )
    np.testing.assert_array_equal(
        extras["teacher"][0], np.eye(3, dtype=np.float32)
    )
    np.testing.assert_array_equal(
        extras["teacher"][1, :2], np.eye(3, dtype=np.float32)[[1, 1]]
    )


def test_a_teacher_of_other_data_is_refused():
    with pytest.raises(InputError, match="the vector of none of 2 texts"):
        TaughtBatches(TEACHER, ["lamp", "desk"])
