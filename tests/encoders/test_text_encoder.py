"""`encode`, and the hook that keeps weights up to date before reads."""

import io
import pathlib
from collections.abc import Callable
from contextlib import redirect_stderr
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from tests.encoders.small import EACH, small_encoder

ODD = [
    "",
    " \t ",
    "a",
    b"\xff\xfe\xc3 hotel",
    "a\0b \0",
    "😀 👩‍👩‍👧",
    "上海 酒店",
    "فنادق في شنغهاي",
    "hotel " * 10_000,
    "\ud800",
    "#",
]


@pytest.fixture(scope="module", params=EACH)
def encoder(request) -> dssm.TextEncoder:
    return small_encoder(request.param, max_words=None)


@pytest.fixture(scope="module")
def rnn() -> dssm.TextEncoder:
    return small_encoder("rnn", oov_buckets=64)


def test_odd_texts_have_unit_vectors(encoder):
    vectors = encoder.encode(ODD)
    assert vectors.shape == (len(ODD), encoder.dimension)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    empty, blank, *_, hash_sign = vectors
    np.testing.assert_allclose(empty, blank, atol=1e-6)
    np.testing.assert_allclose(empty, hash_sign, atol=1e-6)


def test_zero_weights_give_the_first_basis_vector(encoder):
    """Zero vectors, and zero parts of a combined vector, have a direction."""
    before = encoder.get_weights()
    encoder.set_weights([np.zeros_like(weight) for weight in before])
    vectors = encoder.encode(["hotels", ""])
    encoder.set_weights(before)
    expected = np.eye(encoder.dimension)[[0, 0]]
    if isinstance(encoder, dssm.CombinedEncoder):
        # Beside a zero sketch, the last number has the whole length.
        expected[:, [0, 3, 9]] = np.sqrt([1 / 8, 2 / 8, 5 / 8])
    np.testing.assert_allclose(vectors, expected, atol=1e-7)


def test_an_empty_list_gives_no_vectors(encoder):
    assert encoder.encode([]).shape == (0, encoder.dimension)
    assert encoder(np.array([], object)).shape == (0, encoder.dimension)


def test_arrays_and_bytes(rnn):
    texts = ["hotel", "上海"]
    vectors = rnn.encode(texts)
    for other in (np.array(texts), [text.encode() for text in texts]):
        np.testing.assert_array_equal(rnn.encode(other), vectors)


def test_progress_bar(rnn):
    shown = io.StringIO()
    with redirect_stderr(shown):
        rnn.encode(["a", "b", "c"], batch_size=2, progress=True)
        rnn.encode(["a"])
    assert "encode:" in shown.getvalue() and "1/2" in shown.getvalue()
    assert shown.getvalue().endswith("\r")  # the line is free again


def test_what_is_not_a_text(rnn):
    with pytest.raises(
        dssm.InputError, match=r"text 1 is 7 \(int\), expected str"
    ):
        rnn.encode(["a", 7])  # type: ignore[list-item]
    with pytest.raises(dssm.InputError, match="got one text, 'hotels'"):
        rnn.encode("hotels")


def test_max_words():
    short = small_encoder("rnn", max_words=2)
    vectors = short.encode(["a b c d", "a b", "a"])
    np.testing.assert_array_equal(vectors[0], vectors[1])
    assert abs(vectors[1] - vectors[2]).max() > 0.01


TEXTS = ["hex bolt", "wood glue"]

READS: dict[str, Callable[[Any, pathlib.Path], Any]] = {
    "encode": lambda encoder, _: encoder.encode(TEXTS),
    "unit_vectors": lambda encoder, _: encoder.unit_vectors(tf.constant(TEXTS)),
    "call": lambda encoder, _: encoder(TEXTS),
    "get_weights": lambda encoder, _: encoder.get_weights(),
    "table": lambda encoder, _: encoder.backward_embedding.get_weights(),
    "predict": lambda encoder, _: encoder.predict(TEXTS, verbose=0),
    "predict_on_batch": lambda encoder, _: encoder.predict_on_batch(TEXTS),
    "export": lambda encoder, folder: encoder.export(folder, verbose=False),
    "save": lambda encoder, folder: encoder.save(folder / "encoder.keras"),
    "saving": lambda encoder, folder: keras.saving.save_model(
        encoder, folder / "encoder.keras"
    ),
    "save_weights": lambda encoder, folder: encoder.save_weights(
        folder / "encoder.weights.h5"
    ),
}


@pytest.fixture(scope="module")
def bilstm() -> dssm.BidirectionalLSTMEncoder:
    return dssm.BidirectionalLSTMEncoder(cells=2)


@pytest.mark.parametrize("read", READS)
def test_weights_are_brought_up_to_date_before(read, bilstm, tmp_path):
    table = bilstm.backward_embedding.table
    table.assign(tf.zeros_like(table))
    up_to_date = np.full(table.shape, 0.5)
    for layer in (bilstm, bilstm.backward_embedding):
        layer.before_read = lambda: table.assign(up_to_date)
    READS[read](bilstm, tmp_path)
    np.testing.assert_array_equal(table, up_to_date)


def test_weights_that_are_set_are_not_updated_afterwards(bilstm):
    """Else a pending update would be added to the new weights."""
    zeros = [np.zeros(variable.shape) for variable in bilstm.variables]
    table = bilstm.embedding.table
    bilstm.before_read = lambda: table.assign(table + 0.5)
    bilstm.set_weights(zeros)
    np.testing.assert_array_equal(table, 0)


def test_a_training_call_and_a_graph_do_not_call_the_hook(bilstm):
    calls: list[str] = []
    bilstm.before_read = lambda: calls.append("called")
    bilstm(TEXTS, training=True)
    tf.function(bilstm)(tf.constant(TEXTS))
    assert calls == []
    bilstm.encode(TEXTS * 10, batch_size=2)
    assert calls == ["called"]  # not by each batch, which run in threads


@pytest.mark.parametrize("name", EACH)
def test_what_encoders_say_of_themselves(name):
    """The parts of their vectors, and the networks that read word by word."""
    encoder = small_encoder(name)
    assert sum(encoder.parts().values()) == encoder.dimension
    assert len(encoder.parts()) == (4 if name == "combined" else 1)
    networks = {"dssm": 0, "clsm_1": 0, "clsm_3": 0, "bilstm": 2}.get(name, 1)
    assert len(encoder.networks) == networks
    for embedding, layer in encoder.networks:
        assert embedding in encoder.embeddings and layer in encoder.layers
