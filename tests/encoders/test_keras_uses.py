"""What Keras does with any model, done with an encoder."""

import keras
import numpy as np
import pydot
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from tests.encoders.small import EACH, small_encoder

TEXTS = ["Hotels in Shanghai", "", "上海 hotel"]

SUMMARY: dict[str, dict[str, tuple[str, int]]] = {
    "bilstm": {
        "trigrams": ("(None, None, None)", 0),
        "embedding": ("(None, 6)", 50_653 * 6),
        "lstm": ("(None, 2)", 2 * 6 + 6 + 2 * 4),
        "embedding_backward": ("(None, 6)", 50_653 * 6),
        "lstm_backward": ("(None, 2)", 2 * 6 + 6 + 2 * 4),
    },
    "rnn": {
        "trigrams": ("(None, None, None)", 0),
        "embedding": ("(None, 4)", 50_653 * 4),
        "rnn": ("(None, 4)", 4 * 4 + 4),
    },
    "dssm": {
        "trigrams": ("(None, None, None)", 0),
        "embedding": ("(None, 4)", 50_653 * 4),
        "dense_1": ("(None, 3)", 4 * 3 + 3),
        "dense_2": ("(None, 2)", 3 * 2 + 2),
    },
    "combined": {
        "trigrams": ("(None, None, None)", 0),
        "embedding": ("(None, 9)", 50_653 * 9),
        "lstm": ("(None, 3)", 3 * 9 + 9),
        "bag_embedding": ("(None, 2)", 50_653 * 2),
        "word_sketch": ("(None, 4)", 2 * 2048 * 1 + 2**17),
    },
}
"""Output shape and number of weights of each layer, by hand."""


@pytest.fixture(scope="module")
def encoder() -> dssm.TextEncoder:
    return small_encoder("lstm_full_forget")


def rows_of_summary(model: keras.Model) -> dict[str, tuple[str, int]]:
    """Shape and count of each layer, by name, as `summary` prints them."""
    lines: list[str] = []
    model.summary(80, expand_nested=True, print_fn=lines.append)
    cells = [
        [cell.strip() for cell in line.split("│")[1:-1]]
        for line in lines[0].splitlines()
        if line.startswith("│")
    ]
    return {
        name.strip("└ ").split(" ")[0]: (shape, int(count.replace(",", "")))
        for name, shape, count in cells
        if count  # else the rest of a long name
    }


@pytest.mark.parametrize("name", SUMMARY)
def test_summary_shows_shapes_and_counts(name):
    assert rows_of_summary(small_encoder(name)) == SUMMARY[name]


def test_summary_of_both_towers():
    model = dssm.TwoTower(
        dssm.RNNEncoder(units=4, name="query"),
        dssm.RNNEncoder(units=4, name="document"),
    )
    assert rows_of_summary(model) == {
        "query": ("(None, 4)", 50_653 * 4 + 20),
        "document": ("(None, 4)", 50_653 * 4 + 20),
        **SUMMARY["rnn"],
    }


def functional_model(encoder: dssm.TextEncoder) -> keras.Model:
    texts = keras.Input((), dtype="string", name="texts")
    return keras.Model(texts, keras.layers.Dense(2)(encoder(texts)))


def test_plot_of_a_functional_model(encoder, tmp_path):
    graph = keras.utils.model_to_dot(
        functional_model(encoder), show_shapes=True
    )
    assert "lstm_encoder" in graph.to_string()
    assert "(None, 3)" in graph.to_string()
    try:
        pydot.call_graphviz("dot", ["-V"], tmp_path)
    except OSError:
        pytest.skip("the programs of graphviz are not installed")
    keras.utils.plot_model(
        encoder, tmp_path / "encoder.png", show_shapes=True, expand_nested=True
    )
    assert (tmp_path / "encoder.png").read_bytes().startswith(b"\x89PNG")


LOAD = """
import sys
import numpy as np
import keras, tensorflow as tf
import keras_lstm_dssm

texts = tf.constant(np.load(sys.argv[1] + "/texts.npy").tolist())
model = keras.saving.load_model(sys.argv[1] + "/model.keras")
np.save(sys.argv[1] + "/outputs.npy", model.predict(texts, verbose=0))
"""


def test_a_functional_model_trains_saves_and_predicts_in_a_fresh_process(
    tmp_path, fresh_process
):
    model = functional_model(small_encoder("combined"))
    texts = tf.constant(TEXTS)
    before = model(texts).numpy()
    model.compile("sgd", "mse")
    model.fit(texts, np.ones((3, 2)), verbose=0)
    after = model(texts).numpy()
    assert abs(after - before).max() > 1e-3
    model.save(tmp_path / "model.keras")
    np.save(tmp_path / "texts.npy", np.array(TEXTS))
    fresh_process(LOAD, tmp_path)
    outputs = np.load(tmp_path / "outputs.npy")
    np.testing.assert_allclose(outputs, after, rtol=1e-6)


def test_shape_and_dtype_of_the_symbolic_output(encoder):
    output = encoder(keras.Input((), batch_size=7, dtype="string"))
    assert (output.shape, output.dtype) == ((7, 3), "float32")
    assert encoder.compute_output_shape((None,)) == (None, 3)


@pytest.mark.parametrize(("symbolic", "message"), [
    (keras.Input((3,)), r"got float32 \(None, 3\); write keras.Input\("),
    (keras.Input((1,), dtype="string"), r"got string \(None, 1\); write"),
])  # fmt: skip
def test_symbolic_inputs_that_are_no_texts(encoder, symbolic, message):
    with pytest.raises(dssm.InputError, match=f"strings .batch,., {message}"):
        encoder(symbolic)


def test_predict_equals_a_call(encoder):
    expected = encoder(TEXTS)
    dataset = tf.data.Dataset.from_tensor_slices(TEXTS).batch(2)
    for x in (TEXTS, np.array(TEXTS), tf.constant(TEXTS), dataset):
        y = encoder.predict(x, verbose=0)
        np.testing.assert_allclose(y, expected, rtol=1e-6, atol=1e-7)
    for x in (TEXTS, np.array(TEXTS), tf.constant(TEXTS)):
        y = encoder.predict_on_batch(x)
        np.testing.assert_allclose(y, expected, rtol=1e-6, atol=1e-7)


def test_export_writes_the_call(encoder, tmp_path):
    encoder.export(tmp_path / "saved", verbose=False)
    saved = tf.saved_model.load(str(tmp_path / "saved"))
    np.testing.assert_allclose(
        saved.serve(tf.constant(TEXTS)), encoder(TEXTS), rtol=1e-6
    )
    with pytest.raises(dssm.InputError, match="cannot be exported as"):
        encoder.export(tmp_path / "model.onnx", format="onnx")


@pytest.mark.parametrize("name", EACH)
def test_float64(name):
    """Also while Keras's default is float32."""
    encoder = small_encoder(name, dtype="float64")
    single = small_encoder(name)
    single.set_weights(encoder.get_weights())
    np.testing.assert_allclose(encoder(TEXTS), single(TEXTS), atol=1e-5)
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(encoder(TEXTS, training=True) ** 2)
    gradients = tape.gradient(
        total, [variable.value for variable in encoder.trainable_variables]
    )
    assert {gradient.dtype for gradient in gradients} == {tf.float64}
    if name == "combined":  # which contains all the others' operations
        vectors = encoder.encode(TEXTS)
        assert vectors.dtype == np.float64
        lengths = np.linalg.norm(vectors, axis=1)
        np.testing.assert_allclose(lengths, 1, rtol=1e-14)
