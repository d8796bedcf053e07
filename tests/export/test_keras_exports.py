"""Keras and TensorFlow export the encoders that a `TwoTower` holds.

C++ alone, as in TF Serving, runs what Keras has written. What
`tf.saved_model.save` writes of any model of Keras 3.15 runs in Python only.
"""

from pathlib import Path

import numpy as np
import tensorflow as tf

import keras_lstm_dssm as dssm
from keras_lstm_dssm.export import Documents, export_models
from tests.encoders.small import EACH, FITTED, by_numpy, small_encoder
from tests.export.agreement import check_export, run_in_cpp
from tests.models.small_towers import fit, two_tower
from tests.serving.wire import predict_request

TEXTS = ["hex bolt", "", "Wood glue, 8 oz", "上海 bolt"]


def vectors_in_cpp(*folders: Path) -> list[np.ndarray]:
    """The only output of each SavedModel for `TEXTS`."""
    array = np.array([text.encode() for text in TEXTS], object)
    requests = {
        folder: [predict_request("any", text=array)] for folder in folders
    }
    outputs = [output for (output,) in run_in_cpp(requests)]
    assert all(len(output) == 1 for output in outputs)
    return [vectors for output in outputs for vectors in output.values()]


def test_export_of_each_kind_as_both_towers(tmp_path):
    encoders = {name: small_encoder(name) for name in (*EACH, *FITTED)}
    for name, encoder in encoders.items():
        model = dssm.TwoTower(encoder, encoder)
        model.query_encoder.export(tmp_path / name, verbose=False)
    found = vectors_in_cpp(*[tmp_path / name for name in encoders])
    for (name, encoder), vectors in zip(encoders.items(), found, strict=True):
        if name in EACH:
            expected = [by_numpy(encoder, text) for text in TEXTS]
        else:  # tests/encoders proves what it computes
            expected = encoder(TEXTS)
        np.testing.assert_allclose(vectors, expected, rtol=1e-4, atol=1e-5)


EXPORT = """
import sys
from pathlib import Path
import keras, tensorflow as tf
import keras_lstm_dssm as dssm

folder = Path(sys.argv[1])
model = keras.saving.load_model(folder / "model.keras")
query, document = model.query_encoder, model.document_encoder
query.export(folder / "export", verbose=False)
tf.saved_model.save(document, str(folder / "saved_model"))
text = keras.Input((), dtype="string", name="text")
keras.Model(text, query(text)).export(folder / "functional", verbose=False)
archive = keras.export.ExportArchive()
archive.track(document)
spec = tf.TensorSpec([None], tf.string, "text")
archive.add_endpoint("serve", document.unit_vectors, [spec])
archive.write_out(str(folder / "archive"), verbose=False)
"""


def test_a_trained_and_loaded_model_is_exported_in_four_ways(
    tmp_path, fresh_process
):
    model = two_tower()
    fit(model)
    model.save(tmp_path / "model.keras")
    fresh_process(EXPORT, tmp_path)
    export, functional, archive = vectors_in_cpp(
        tmp_path / "export", tmp_path / "functional", tmp_path / "archive"
    )
    saved = tf.saved_model.load(str(tmp_path / "saved_model"))
    (saved_model,) = saved.signatures["serving_default"](
        inputs=tf.constant(TEXTS)
    ).values()
    query, document = (
        np.stack([by_numpy(encoder, text) for text in TEXTS])
        for encoder in (model.query_encoder, model.document_encoder)
    )
    assert abs(query - document).max() > 0.01
    for vectors in (export, functional):
        np.testing.assert_allclose(vectors, query, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(saved_model, document, rtol=1e-4, atol=1e-6)
    units = document / np.linalg.norm(document, axis=1, keepdims=True)
    np.testing.assert_allclose(archive, units, rtol=1e-4, atol=1e-6)


def test_export_of_both_towers(tmp_path):
    """Unit vectors, batching and warm-up, as `export_models` writes them."""
    model = two_tower()
    fit(model)
    folders = model.export(tmp_path / "models")
    names = ["query_encoder", "document_encoder"]
    assert folders == [tmp_path / "models" / name / "1" for name in names]
    text = np.array([text.encode() for text in TEXTS], object)
    request = predict_request("any", text=text)
    found = check_export(*[(folder, request) for folder in folders])
    for tower, outputs in zip(model.towers, found, strict=True):
        vectors = np.stack([by_numpy(tower, text) for text in TEXTS])
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        np.testing.assert_allclose(outputs["embedding"], vectors, atol=1e-5)
    assert (tmp_path / "models" / "models.config").exists()


def test_export_with_documents_as_the_second_version(tmp_path):
    model = dssm.TwoTower(*[small_encoder("dssm") for _ in range(2)])
    model.export(tmp_path)
    documents = Documents(["b", "g"], ["hex bolt", "wood glue"])
    folders = model.export(tmp_path, documents=documents)
    assert [folder.relative_to(tmp_path).as_posix() for folder in folders] == [
        "query_encoder/2", "document_encoder/2", "retriever/2",
    ]  # fmt: skip
    assert dssm.export_models is export_models
