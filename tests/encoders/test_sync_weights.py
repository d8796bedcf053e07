"""An encoder calls `before_read` before anything reads its weights."""

import pathlib
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm import BidirectionalLSTMEncoder

TEXTS = ["hex bolt", "wood glue"]

READS: dict[str, Callable[[Any, pathlib.Path], Any]] = {
    "encode": lambda encoder, _: encoder.encode(TEXTS),
    "unit_vectors": lambda encoder, _: encoder.unit_vectors(tf.constant(TEXTS)),
    "call": lambda encoder, _: encoder(TEXTS),
    "get_weights": lambda encoder, _: encoder.get_weights(),
    "table": lambda encoder, _: encoder.backward_embedding.get_weights(),
    "save": lambda encoder, folder: encoder.save(folder / "encoder.keras"),
    "saving": lambda encoder, folder: keras.saving.save_model(
        encoder, folder / "encoder.keras"
    ),
    "save_weights": lambda encoder, folder: encoder.save_weights(
        folder / "encoder.weights.h5"
    ),
}


@pytest.mark.parametrize("read", READS)
def test_weights_are_brought_up_to_date_before(
    read: str, tmp_path: pathlib.Path
) -> None:
    encoder = BidirectionalLSTMEncoder(cells=2)
    up_to_date = np.full(encoder.backward_embedding.table.shape, 0.5)
    encoder.before_read = lambda: encoder.backward_embedding.table.assign(
        up_to_date
    )
    READS[read](encoder, tmp_path)
    np.testing.assert_array_equal(encoder.backward_embedding.table, up_to_date)


def test_weights_that_are_set_are_not_updated_afterwards() -> None:
    """Else a pending update would be added to the new weights."""
    encoder = BidirectionalLSTMEncoder(cells=2)
    zeros = [np.zeros(variable.shape) for variable in encoder.variables]
    table = encoder.embedding.table
    encoder.before_read = lambda: table.assign(table + 0.5)
    encoder.set_weights(zeros)
    np.testing.assert_array_equal(table, 0)


def test_a_training_call_and_a_graph_do_not_call_it() -> None:
    encoder = BidirectionalLSTMEncoder(cells=2)
    calls: list[str] = []
    encoder.before_read = lambda: calls.append("called")
    encoder(TEXTS, training=True)
    tf.function(encoder)(tf.constant(TEXTS))
    assert calls == []
    encoder.encode(TEXTS * 10, batch_size=2)
    assert calls == ["called"]  # not by each batch, which run in threads


def test_the_hook_is_not_part_of_the_saved_encoder(
    tmp_path: pathlib.Path,
) -> None:
    encoder = BidirectionalLSTMEncoder(cells=2)
    encoder.before_read = lambda: None
    encoder.save(tmp_path / "encoder.keras")
    loaded = keras.saving.load_model(tmp_path / "encoder.keras")
    assert loaded.before_read is None
    np.testing.assert_array_equal(loaded.encode(TEXTS), encoder.encode(TEXTS))
