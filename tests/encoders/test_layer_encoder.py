"""Keras layers and models from strings to vectors as towers."""

import json
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from keras_lstm_dssm.export import Documents
from keras_lstm_dssm.serving import Client, PredictionServer
from tests.export.agreement import run_in_cpp, serving_ops, stock_ops
from tests.models.small_towers import QUERIES, TITLES, fit
from tests.serving.wire import predict_request

TEXTS = ["hex bolt", "drill kit", "unknown words", "hex bolt"]


def words(**options: Any) -> keras.layers.TextVectorization:
    layer = keras.layers.TextVectorization(
        output_sequence_length=4, **options
    )  # a fixed length: an RNN of Keras cannot run over no time steps
    layer.adapt(QUERIES + TITLES)
    return layer


def gru() -> keras.Sequential:
    embedding = keras.layers.Embedding(20, 4, mask_zero=True)
    return keras.Sequential([words(), embedding, keras.layers.GRU(3)])


def means() -> keras.Model:
    text = keras.Input((), dtype="string")
    x = keras.layers.Embedding(20, 3)(words()(text))
    return keras.Model(text, keras.layers.GlobalAveragePooling1D()(x))


def towers(*layers: keras.layers.Layer) -> dssm.TwoTower:
    model = dssm.TwoTower(*layers, negatives="in_batch")
    model.compile(keras.optimizers.SGD(0.5), dssm.CosineSoftmax(gamma=2.0))
    return model


def units(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_vectors_are_those_of_the_layer():
    for layer in (gru(), means()):
        encoder = dssm.LayerEncoder(layer)
        expected = layer.predict(tf.constant(TEXTS), verbose=0)
        np.testing.assert_allclose(encoder(TEXTS), expected, rtol=1e-6)
        vectors = encoder.encode(TEXTS)
        np.testing.assert_allclose(vectors, units(expected), rtol=1e-5)
        assert (encoder.dimension, encoder.name) == (3, layer.name)


@pytest.mark.parametrize("tied", [False, True])
def test_a_step_moves_the_weights_as_plain_keras_does(tied):
    query, document = gru(), means()
    model = towers(query, query if tied else document)
    both = [query] if tied else [query, document]
    start = [layer.get_weights() for layer in both]
    history = model.fit(QUERIES[:4], TITLES[:4], batch_size=4, verbose=0)
    after = [layer.get_weights() for layer in both]
    for layer, weights in zip(both, start, strict=True):
        layer.set_weights(weights)
    variables = [v.value for layer in both for v in layer.trainable_variables]
    with tf.GradientTape() as tape:
        q, d = (
            tf.math.l2_normalize(layer(tf.constant(texts[:4])), axis=1)
            for layer, texts in ((query, QUERIES), (both[-1], TITLES))
        )
        # Rows and columns may be in another order: the mean is the same.
        losses = keras.losses.sparse_categorical_crossentropy(
            tf.range(4), 2.0 * tf.matmul(q, d, transpose_b=True), True
        )
        loss = tf.reduce_mean(losses)
    assert history.history["loss"] == [pytest.approx(float(loss), rel=1e-5)]
    gradients = tape.gradient(loss, variables)
    keras.optimizers.SGD(0.5).apply(
        gradients, [v for layer in both for v in layer.trainable_variables]
    )
    for layer, weights in zip(both, after, strict=True):
        for ours, expected in zip(weights, layer.get_weights(), strict=True):
            np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-6)
    moved = zip(start[0], after[0], strict=True)
    assert max(abs(one - other).max() for one, other in moved) > 0.01


LOAD = """
import json, sys
import keras, keras_lstm_dssm as dssm

model = keras.saving.load_model(sys.argv[1])
texts, titles = json.loads(sys.argv[2])
hits = dssm.Index(model, titles).search(texts, k=2)
encoders = model.query_encoder, model.document_encoder
vectors = [encoder.encode(texts).tolist() for encoder in encoders]
history = model.fit(texts, titles, verbose=0).history
print(json.dumps([vectors, hits, history["loss"]]))
"""


def test_from_fit_to_a_fresh_process_and_a_server(tmp_path, fresh_process):
    model = towers(gru(), means())
    stop = keras.callbacks.EarlyStopping("val_accuracy", patience=0)
    history = fit(
        model, 9, validation_data=(QUERIES[:4], TITLES[:4]), callbacks=[stop]
    ).history
    assert 2 <= len(history["val_loss"]) <= 9
    encoders = model.query_encoder, model.document_encoder
    vectors = [encoder.encode(TEXTS) for encoder in encoders]
    assert abs(vectors[0] - vectors[1]).max() > 0.01

    model.save(tmp_path / "model.keras")
    arguments = json.dumps([TEXTS, TITLES[:4]])
    (line,) = fresh_process(LOAD, tmp_path / "model.keras", arguments)
    loaded, hits, losses = json.loads(line)
    np.testing.assert_allclose(loaded, vectors, rtol=1e-5, atol=1e-6)
    index = dssm.Index(model, TITLES[:4])
    expected = index.search(TEXTS, k=2)
    assert [[hit[0] for hit in row] for row in hits] == [
        [hit.id for hit in row] for row in expected
    ]
    assert np.isfinite(losses).all()

    folder = tmp_path / "models"
    versions = model.export(folder, documents=Documents([*"abcd"], TITLES[:4]))
    text = np.array([text.encode() for text in TEXTS], object)
    request = predict_request("any", text=text)
    results = run_in_cpp({version: [request] for version in versions[:2]})
    for (outputs,), expected_vectors in zip(results, vectors, strict=True):
        np.testing.assert_allclose(
            outputs["embedding"], expected_vectors, atol=1e-5
        )
    assert all(serving_ops(version) <= stock_ops() for version in versions)
    with (
        PredictionServer(folder, port=0) as server,
        Client(server.address) as client,
    ):
        served = client.search(TEXTS, 2)
    for row, expected_row in zip(served, expected, strict=True):
        for hit, expected_hit in zip(row, expected_row, strict=True):
            assert TITLES["abcd".index(hit.id)] == expected_hit.id
            assert hit.score == pytest.approx(expected_hit.score, abs=1e-5)


def test_a_layer_and_an_encoder_of_trigrams_train_together():
    model = towers(dssm.DSSMEncoder([3]), gru())
    before = model.get_weights()
    assert fit(model, 2).history["loss"][1] < 1.2
    for one, other in zip(before, model.get_weights(), strict=True):
        assert abs(one - other).max() > 1e-4


def test_rows_inside_a_functional_model_are_updated_lazily():
    """The weights equal those of an encoder that is the tower itself."""
    weights = []
    for lazy in (False, True):
        keras.utils.set_random_seed(3)
        text = keras.Input((), dtype="string")
        vectors = dssm.DSSMEncoder([4])(text)
        tower = keras.Model(text, keras.layers.Dense(3)(vectors))
        model = dssm.TwoTower(tower, tower, negatives="in_batch")
        optimizer = dssm.NesterovMomentum(0.1, lazy=lazy)
        model.compile(optimizer, dssm.CosineSoftmax())
        fit(model, 2)
        weights.append(model.get_weights())
    for dense, rows in zip(*weights, strict=True):
        np.testing.assert_allclose(rows, dense, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("layer", "message"), [
    (keras.layers.Dense(3, name="d"), "d does not read strings: expected str"),
    (keras.layers.TextVectorization(vocabulary=["a"], name="ids"),
     r"ids gives int64 \(None, None\): expected strings .batch,. -> float"),
    (keras.Sequential(
        [keras.layers.TextVectorization(vocabulary=["a"]),
         keras.layers.Embedding(3, 2)], name="words"),
     r"words gives float32 \(None, None, 2\): expected"),
    (len, "or another Keras layer from strings to vectors; got builtin_func"),
])  # fmt: skip
def test_layers_that_give_no_vectors(layer, message):
    with pytest.raises(dssm.InputError, match=message) as caught:
        dssm.TwoTower(layer, layer)
    assert "\n" not in str(caught.value)


def test_towers_of_unequal_widths():
    with pytest.raises(dssm.InputError, match="has 3, the document's 2"):
        dssm.TwoTower(gru(), dssm.DSSMEncoder([2]))


def test_a_layer_in_bfloat16_gives_float32_vectors():
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        layer = means()
    finally:
        keras.config.set_dtype_policy(policy)
    model = towers(layer, layer)
    assert layer.compute_dtype == "bfloat16"
    assert model.query_encoder.encode(TEXTS).dtype == np.float32
    losses = fit(model, 4).history["loss"]
    assert losses[-1] < losses[0]
