"""`LetterTrigrams` and `TrigramEmbedding` in Keras' own models."""

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm import (
    InputError,
    LetterTrigrams,
    LSTMEncoder,
    PeepholeLSTMCell,
    Recurrent,
    TrigramEmbedding,
)
from keras_lstm_dssm.serving.saved_models import SavedGraph
from tests import reference
from tests.export.agreement import run_in_cpp, serving_ops, stock_ops
from tests.serving.wire import predict_request

TEXTS = ["Hex bolt", "", "größe bolt hex hex", "a", "wood glue bolt"]
UNITS, CELLS = 4, 3


def new_model(*first: Any) -> keras.Sequential:
    keras.utils.set_random_seed(1)
    return keras.Sequential(
        [
            *first,
            LetterTrigrams(),
            TrigramEmbedding(
                UNITS, initializer=keras.initializers.RandomNormal(stddev=0.5)
            ),
            Recurrent(PeepholeLSTMCell(CELLS, peephole=None)),
        ]
    )


def new_inputs() -> dict[str, Any]:
    return {
        "array": np.array(TEXTS, object),
        "tensor": tf.constant(TEXTS),
        "dataset": tf.data.Dataset.from_tensor_slices(TEXTS).batch(2),
    }


@pytest.mark.usefixtures("float64")
def test_trains_as_stock_layers_of_trigram_counts():
    """Dense multiplies the counts of all 50,653 trigrams, LSTM has a mask."""
    words = [reference.split(text) for text in TEXTS]
    counts = np.zeros((len(TEXTS), max(map(len, words)), 37**3))
    for text, row in enumerate(words):
        for place, word in enumerate(row):
            counts[text, place] = reference.counts(word)
    mask = counts.any(axis=2)
    inputs = keras.Input(counts.shape[1:])
    mask_input = keras.Input(mask.shape[1:], dtype="bool")
    vectors = keras.layers.Dense(UNITS, use_bias=False)(inputs)
    lstm = keras.layers.LSTM(CELLS, use_cudnn=False)
    stock = keras.Model([inputs, mask_input], lstm(vectors, mask=mask_input))
    model = new_model()
    model.build((None,))
    stock.set_weights(model.get_weights())
    targets = np.random.default_rng(2).normal(size=(len(TEXTS), CELLS))
    before = model.predict(np.array(TEXTS, object), verbose=0)
    for each, x in ((model, tf.constant(TEXTS)), (stock, [counts, mask])):
        each.compile(keras.optimizers.SGD(0.5), "mse")
        each.fit(x, targets, batch_size=len(TEXTS), epochs=3, verbose=0)
    after = model.predict(np.array(TEXTS, object), verbose=0)
    assert np.abs(after - before).max() > 0.1
    np.testing.assert_allclose(after, stock.predict_on_batch([counts, mask]))
    for weight, expected in zip(
        model.get_weights(), stock.get_weights(), strict=True
    ):
        np.testing.assert_allclose(weight, expected, rtol=1e-10, atol=1e-12)


def test_fit_and_predict_of_arrays_tensors_and_datasets():
    model = new_model()
    model.compile("sgd", "mse")
    targets = np.ones((len(TEXTS), CELLS), np.float32)
    expected = model(tf.constant(TEXTS)).numpy()
    start = model.get_weights()
    losses = []
    for name, x in new_inputs().items():
        np.testing.assert_allclose(
            model.predict(x, batch_size=2, verbose=0), expected, atol=1e-6
        )
        if name == "dataset":
            batches = tf.data.Dataset.from_tensor_slices(targets).batch(2)
            data = (tf.data.Dataset.zip(x, batches),)
        else:
            data = x, targets
        history = model.fit(
            *data, batch_size=2, epochs=2, shuffle=False, verbose=0
        )
        losses.append(history.history["loss"])
        model.set_weights(start)
    assert losses[0][1] < losses[0][0]
    np.testing.assert_allclose(losses, [losses[0]] * 3, rtol=1e-6)


LOAD = """
import sys
import numpy as np
import keras, tensorflow as tf
import keras_lstm_dssm

texts = tf.constant(np.load(sys.argv[1] + "/texts.npy").tolist())
for name in ("built", "functional"):
    model = keras.saving.load_model(f"{sys.argv[1]}/{name}.keras")
    np.save(f"{sys.argv[1]}/{name}.npy", model.predict(texts, verbose=0))
"""


def test_saves_loads_in_a_fresh_process_and_exports(tmp_path, fresh_process):
    """With and without an `Input`; C++ alone runs the exported one."""
    functional = new_model(keras.Input((), dtype="string"))
    built = new_model()
    expected = built.predict(np.array(TEXTS, object), verbose=0)
    assert np.abs(expected).max() > 0.1
    np.testing.assert_array_equal(functional(tf.constant(TEXTS)), expected)
    built.save(tmp_path / "built.keras")
    functional.save(tmp_path / "functional.keras")
    np.save(tmp_path / "texts.npy", np.array(TEXTS))
    fresh_process(LOAD, tmp_path)
    for name in ("built", "functional"):
        outputs = np.load(tmp_path / f"{name}.npy")
        np.testing.assert_allclose(outputs, expected, rtol=1e-6)
    built.export(tmp_path / "export", verbose=False)
    check_exported(tmp_path / "export", expected)


def check_exported(folder: Path, expected: np.ndarray) -> None:
    """Checks the outputs in C++, and the ops, which are those of servers."""
    ops = serving_ops(folder)
    assert ops <= stock_ops(), ops - stock_ops()
    assert {
        "NormalizeUTF8",
        "CaseFoldUTF8",
        "TFText>WhitespaceTokenizeWithOffsetsV2",
    } <= ops
    loaded = tf.saved_model.load(str(folder)).signatures["serving_default"]
    (name,) = loaded.structured_input_signature[1]
    requests = [
        predict_request("x", **{name: rows})
        for rows in (TEXTS, np.zeros(0, object))
    ]
    outputs, nothing = run_in_cpp({folder: requests})[0]
    np.testing.assert_allclose(outputs["output_0"], expected, rtol=1e-6)
    assert nothing["output_0"].shape == (0, CELLS)
    # A server compares no shapes, and kernels of TF.Text die of a scalar.
    graph = SavedGraph(folder)
    run = graph.function(graph.definitions["serving_default"])
    for shape in ((), (1, 2)):
        with pytest.raises(
            tf.errors.InvalidArgumentError, match="not compatible with expected"
        ):
            run(np.full(shape, b"bolt", object))


def test_an_encoder_is_these_layers():
    """The layer runs over each distinct text and word once."""
    encoder = LSTMEncoder(CELLS, peephole="full", oov_buckets=7)
    embedding, recurrent = encoder.networks[0]
    embedding.table.assign(embedding.table * 20)
    model = keras.Sequential([encoder.trigrams, embedding, recurrent])
    expected = encoder(TEXTS).numpy()
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(model(tf.constant(TEXTS)), expected, atol=1e-6)


def test_stock_layers_read_the_mask():
    texts = keras.Input((), dtype="string")
    embedding = TrigramEmbedding(UNITS)
    ids = LetterTrigrams()(texts)
    assert (ids.shape, ids.dtype, ids.ragged) == (
        (None, None, None), "int32", True,
    )  # fmt: skip
    vectors = embedding(ids)
    assert vectors.shape == (None, None, UNITS)
    mean = keras.layers.GlobalAveragePooling1D()(vectors)
    model = keras.Model(texts, mean)
    batch = LetterTrigrams().distinct(TEXTS)
    by_word, words = embedding(batch).numpy(), batch.words.numpy()
    for row, text in enumerate(batch.text_index.numpy()):
        of_text = by_word[words[text, : batch.lengths[text]]]
        np.testing.assert_allclose(
            model(tf.constant(TEXTS))[row], of_text.mean(axis=0), atol=1e-7
        )


def test_vectors_are_padded_to_at_least_one_step_and_masked():
    embedding = TrigramEmbedding(UNITS)
    vectors = embedding(LetterTrigrams()(["a b", ""]))
    assert vectors.shape == (2, 2, UNITS)
    assert vectors._keras_mask.numpy().tolist() == [[True, True], [True, False]]
    assert not vectors[1, 1].numpy().any()
    table = embedding.table.numpy()
    np.testing.assert_array_equal(vectors[0], table[[37, 2 * 37]])
    nothing = embedding(LetterTrigrams()([]))
    assert nothing.shape == (0, 1, UNITS)
    # Ragged ids of others may have texts without words.
    empty = embedding(tf.ragged.constant([[], [[5]]], tf.int32))
    assert empty._keras_mask.numpy().tolist() == [[False], [True]]
    outputs = Recurrent(PeepholeLSTMCell(CELLS))(empty).numpy()
    assert not outputs[0].any() and outputs[1].all()


def test_ids_that_a_dataset_has_hashed():
    """The model begins with ragged ids, and hashing runs in `Dataset.map`."""
    embedding = TrigramEmbedding(UNITS)
    ids = keras.Input((None, None), dtype="int32", ragged=True)
    model = keras.Model(ids, keras.layers.LSTM(CELLS)(embedding(ids)))
    hashed = new_inputs()["dataset"].map(LetterTrigrams())
    texts = keras.Sequential([LetterTrigrams(), *model.layers[1:]])
    np.testing.assert_allclose(
        model.predict(hashed, verbose=0),
        texts.predict(new_inputs()["dataset"], verbose=0),
        atol=1e-6,
    )


def test_mixed_precision():
    texts = tf.constant(TEXTS)
    model = new_model()
    model(texts)
    layers = [
        TrigramEmbedding(UNITS, dtype="mixed_bfloat16"),
        Recurrent(
            PeepholeLSTMCell(CELLS, peephole=None, dtype="mixed_bfloat16"),
            dtype="mixed_bfloat16",
        ),
    ]
    lower = keras.Sequential([LetterTrigrams(), *layers])
    assert lower(texts).dtype == tf.bfloat16
    lower.set_weights(model.get_weights())
    np.testing.assert_allclose(
        tf.cast(lower(texts), tf.float32), model(texts), atol=0.02
    )
    assert layers[0].table.dtype == "float32"


@pytest.mark.parametrize(("layer", "symbolic", "message"), [
    (LetterTrigrams(), keras.Input((3,)),
     r"reads strings .batch,., got float32 \(None, 3\); write keras.Input\("),
    (LetterTrigrams(), keras.Input((1,), dtype="string"),
     r"reads strings .batch,., got string \(None, 1\); write keras.Input\("),
    (TrigramEmbedding(2), keras.Input((3,), dtype="int32"),
     r"reads the ragged ids of .*, or a WordBatch; got int32 \(None, 3\) with"),
    (TrigramEmbedding(2), tf.constant([[[1]]]), r"got int32 \(1, 1, 1\) with"),
    (TrigramEmbedding(2), tf.ragged.constant([[1]]), r"int32 \(1, None\) with"),
])  # fmt: skip
def test_wrong_inputs(layer, symbolic, message):
    with pytest.raises(InputError, match=message):
        layer(symbolic)
