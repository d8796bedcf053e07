"""Keras layers and models from strings to vectors as towers."""

import json
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from keras_lstm_dssm.analysis import activations, growth
from keras_lstm_dssm.data import Pair
from keras_lstm_dssm.encoders.hybrid_encoder import HybridEncoder
from keras_lstm_dssm.evaluation.systems import words_of
from keras_lstm_dssm.export import Documents
from keras_lstm_dssm.export.graphs.encoder import EncoderModule
from keras_lstm_dssm.export.portable import export_portable
from keras_lstm_dssm.fingerprints import weights_hash
from keras_lstm_dssm.serving import Client, PredictionServer
from keras_lstm_dssm.settings.hybrid import HybridSettings
from keras_lstm_dssm.training import mine_negatives
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


@keras.saving.register_keras_serializable("tests")
class Pooled(keras.Model):
    """A preprocessor, a backbone with named inputs, and a mean over tokens.

    Models of KerasHub have this form.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.preprocessor = words()
        ids = keras.Input((None,), dtype="int64", name="token_ids")
        mask = keras.Input((None,), dtype="bool", name="padding_mask")
        x = keras.layers.Embedding(20, 4)(ids)
        x = keras.layers.MultiHeadAttention(2, 2)(
            x, x, attention_mask=mask[:, None, :]
        )
        self.backbone = keras.Model(
            {"token_ids": ids, "padding_mask": mask}, x, name="backbone"
        )

    def call(self, texts: tf.Tensor) -> tf.Tensor:
        ids = self.preprocessor(texts)
        # A text without words has a token, too, as `[CLS]` would be.
        mask = tf.concat([tf.ones_like(ids[:, :1]), ids[:, 1:]], 1) > 0
        x = self.backbone({"token_ids": ids, "padding_mask": mask})
        weights = tf.cast(mask, x.dtype)[:, :, tf.newaxis]
        return tf.reduce_sum(x * weights, 1) / tf.reduce_sum(weights, 1)


def test_a_backbone_with_named_inputs(tmp_path):
    keras.utils.set_random_seed(1)
    model = towers(Pooled(), Pooled())
    history = fit(model, 40).history["loss"]
    assert np.mean(history[-3:]) < 0.8 * history[0]
    vectors = model.query_encoder.encode(TEXTS)
    expected = units(model.query_encoder.layer(tf.constant(TEXTS)).numpy())
    np.testing.assert_allclose(vectors, expected, atol=1e-6)

    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(
        loaded.query_encoder.encode(TEXTS), vectors, rtol=1e-5, atol=1e-6
    )
    version, _ = model.export(tmp_path / "models")
    text = np.array([text.encode() for text in TEXTS], object)
    ((outputs,),) = run_in_cpp({version: [predict_request("any", text=text)]})
    np.testing.assert_allclose(outputs["embedding"], vectors, atol=1e-5)


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
    (keras.layers.Dense(3, name="d"),
     "d does not read strings: expected a layer from str"),
    (keras.layers.TextVectorization(vocabulary=["a"], name="ids"),
     r"ids gives int64 \(None, None\): expected a layer from strings .batch,."
     " to float"),
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


def test_what_asks_an_encoder_for_its_words():
    """Texts with the same normalised words are one text, as everywhere."""
    model = towers(gru(), means())
    clicks = [Pair("Hex bolt", "drill kit"), Pair("HEX  BOLT", "desk lamp")]
    clicks += [Pair("lamp", "wood glue 8 oz"), Pair("lamp", "Drill kit")]
    mined = mine_negatives(model, clicks, top=9)
    assert mined == {"Hex bolt": ["wood glue 8 oz"], "lamp": ["desk lamp"]}
    assert words_of(model) == "space"
    read = growth(model, "hex bolt", "steel hex bolt")
    assert read.document_words == ("steel", "hex", "bolt")
    beginnings = ["steel", "steel hex", "steel hex bolt"]
    vectors = model.document_encoder.encode(beginnings)
    query = model.query_encoder.encode(["hex bolt"])[0]
    np.testing.assert_allclose(read.document_cosines, vectors @ query, 1e-4)
    with pytest.raises(dssm.InputError, match="LayerEncoder reads all words"):
        activations(model.query_encoder, "hex bolt")
    with pytest.raises(dssm.InputError, match="found the encoder LayerEncoder"):
        export_portable(model, "portable.npz")


def test_layers_in_a_hybrid_retriever(tmp_path):
    model = towers(gru(), means())
    encoder = HybridEncoder({"towers": model.query_encoder}, {"towers": 2.0})
    expected = units(model.query_encoder.layer(tf.constant(TEXTS)).numpy())
    np.testing.assert_allclose(encoder.encode(TEXTS), expected, rtol=1e-5)
    one = encoder.unit_vector(tf.constant(TEXTS[:1]))
    np.testing.assert_allclose(one, expected[:1], rtol=1e-5)
    documents = Documents([*"abcd"], TITLES[:4])
    hybrid = HybridSettings(2.0, 0.0, 3.0, 0.0, 0.0, -1.0, k1=0.0)
    versions = model.export(tmp_path, documents=documents, hybrid=hybrid)
    query = np.array([b"drill"], object)
    request = predict_request("any", text=query, k=np.array([4], np.int32))
    ((outputs,),) = run_in_cpp({versions[-1]: [request]})
    vector = model.query_encoder.encode(["drill"])[0]
    cosines = model.document_encoder.encode(TITLES[:4]) @ vector
    # Only "drill kit" has the word.
    scores = 2.0 * cosines + 3.0 * np.array([0, 0, 1, 0]) - 1.0
    order = np.argsort(-scores)
    assert [i.decode() for i in outputs["ids"][0]] == [
        *np.array([*"abcd"])[order]
    ]
    expected = 1 / (1 + np.exp(-scores[order]))
    np.testing.assert_allclose(outputs["scores"][0], expected, atol=1e-5)


class Halves(keras.layers.Layer):
    """Has a vocabulary in a layer that no other layer of Keras contains."""

    def __init__(self, vocabulary: list[str]) -> None:
        super().__init__()
        self.lookup = keras.layers.StringLookup(vocabulary=vocabulary)
        self.table = keras.layers.Embedding(9, 2)

    def call(self, texts: Any) -> Any:
        return self.table(self.lookup(texts))


def adapted(texts: list[str]) -> keras.layers.TextVectorization:
    layer = keras.layers.TextVectorization(
        standardize=str_lower, output_sequence_length=2
    )
    layer.adapt(texts)
    return layer


@keras.saving.register_keras_serializable("tests")
def str_lower(texts: tf.Tensor) -> tf.Tensor:
    return tf.strings.lower(texts)


LOADED_PRINTS = """
import sys
import keras, keras_lstm_dssm
from keras_lstm_dssm.export.graphs.encoder import EncoderModule

keras.layers.Hashing(3), keras.layers.Embedding(3, 3)  # takes names
for path in sys.argv[1:]:
    model = keras.saving.load_model(path, safe_mode=False)
    print(*(EncoderModule(tower).fingerprint for tower in model.towers))
"""


def hashed(
    pool: str = "average", standardize: str | None = None, **options: Any
) -> keras.Model:
    """A functional model in another, with an operation and a lambda."""
    text = keras.Input((), dtype="string")
    x = keras.layers.TextVectorization(
        standardize=standardize,
        output_sequence_length=2,
        vocabulary=["a", "b"],
    )(text)
    ids = keras.layers.Hashing(**{"num_bins": 9, **options})(x)
    model = keras.Model(text, keras.layers.Embedding(9, 2)(ids))
    kind = {
        "average": keras.layers.GlobalAveragePooling1D,
        "max": keras.layers.GlobalMaxPooling1D,
    }[pool]
    text = keras.Input((), dtype="string")
    x = keras.ops.tanh(model(text))
    x = keras.layers.Lambda(lambda x: 2 * x + 1)(x)
    return keras.Model(text, kind()(x))


def test_a_fingerprint_covers_the_settings_of_all_layers():
    """Equal weights with another salt, say, are another encoder."""
    made = [
        hashed(), hashed(salt=1), hashed(salt=2), hashed("max"),
        hashed(standardize="lower"), hashed(num_bins=8), hashed(),
    ]  # fmt: skip
    for each in made:
        each.set_weights(made[0].get_weights())
    *prints, again = (
        EncoderModule(dssm.LayerEncoder(each)).fingerprint for each in made
    )
    assert len(set(prints)) == len(prints)
    assert again == prints[0]


class Scaled(keras.layers.Layer):
    """A layer of which Keras cannot tell the settings."""

    def __init__(self, layer: keras.layers.Layer) -> None:
        super().__init__()
        self.layer = layer

    def call(self, texts: Any) -> Any:
        return self.layer(texts)


def of_words(texts: list[str]) -> keras.Model:
    average = keras.layers.GlobalAveragePooling1D()
    return keras.Sequential(
        [adapted(texts), keras.layers.Embedding(9, 2), average]
    )


def joined(swapped: bool) -> keras.Model:
    text = keras.Input((), dtype="string")
    x = keras.layers.Embedding(20, 3)(words()(text))
    pooled = [
        keras.layers.GlobalAveragePooling1D()(x),
        keras.layers.GlobalMaxPooling1D()(x),
    ]
    one, other = pooled[::-1] if swapped else pooled
    return keras.Model(text, keras.layers.Subtract()([one, other]))


@pytest.mark.parametrize(("make", "one", "other"), [
    (of_words, ["bolt", "glue"], ["glue", "nut"]),
    (Halves, ["bolt", "glue"], ["glue", "nut"]),
    (joined, False, True),
    (lambda salt: Scaled(hashed(salt=salt)), 1, 2),
], ids=["vocabulary", "own layer", "connections", "layers inside"])  # fmt: skip
def test_a_fingerprint_covers(make, one, other):
    """Equal weights in another network, or of other words, are another one."""
    encoders = [dssm.LayerEncoder(make(each)) for each in (one, one, other)]
    for encoder in encoders[1:]:
        encoder.set_weights(encoders[0].get_weights())
    prints = [EncoderModule(each).fingerprint for each in encoders]
    assert prints[0] == prints[1] != prints[2]
    assert weights_hash(encoders[0].weights) == weights_hash(
        encoders[2].weights
    )


def test_other_encoders_have_the_hash_of_their_weights():
    encoder = dssm.DSSMEncoder([3])
    assert EncoderModule(encoder).fingerprint == weights_hash(encoder.weights)


def test_a_fingerprint_covers_the_weights_of_a_hybrid():
    encoders = {
        "towers": dssm.DSSMEncoder([3]),
        "words": dssm.encoders.WordSumEncoder(2, 1, 2),
    }
    modules = [
        EncoderModule(HybridEncoder(encoders, {"towers": 1.0, "words": weight}))
        for weight in (1.0, 4.0, 4.0)
    ]
    vectors = [each.encode_all(["bolt"]) for each in modules]
    assert abs(vectors[0] - vectors[1]).max() > 0.1
    prints = [each.fingerprint for each in modules]
    assert prints[0] != prints[1] == prints[2]


def test_a_loaded_model_has_the_fingerprint_of_the_saved_one(
    tmp_path, fresh_process
):
    models = towers(gru(), means()), towers(hashed(salt=3), hashed("max"))
    paths = [tmp_path / "one.keras", tmp_path / "other.keras"]
    for model, path in zip(models, paths, strict=True):
        model.save(path)
    assert [line.split() for line in fresh_process(LOADED_PRINTS, *paths)] == [
        [EncoderModule(tower).fingerprint for tower in model.towers]
        for model in models
    ]


def test_towers_of_unequal_widths():
    with pytest.raises(dssm.InputError, match="3 for queries and 2 for doc"):
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
