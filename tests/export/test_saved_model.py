"""Exported encoders give the encoders' own numbers, wherever they are run."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export import (
    SavedEncoder,
    SavedRetriever,
    export_encoder,
    export_retriever,
)
from tests.export.cpp_loader import run_in_cpp
from tests.export.ops import serving_ops, stock_ops

TEXTS = [
    "hotels in shanghai",
    "",
    "  \u3000 ",
    "a",
    b"\xff\xfe broken",
    "nul\x00inside",
    "smile \U0001f600",
    "上海 酒店",
    "فنادق شنغهاي",
    "word " * 10_000,
]
ENCODERS = {
    "lstm": lambda: dssm.LSTMEncoder(
        4, peephole="full", forget_gate=True, truncate=3, oov_buckets=64
    ),
    "bilstm": lambda: dssm.BidirectionalLSTMEncoder(4, peephole="diagonal"),
    "rnn": lambda: dssm.RNNEncoder(6),
    "dssm": lambda: dssm.DSSMEncoder([6, 4]),
    "clsm": lambda: dssm.CLSMEncoder(window=3, filters=6, units=4),
}


@pytest.fixture(scope="module", params=ENCODERS)
def exported(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[np.ndarray, pathlib.Path]:
    """Expected vectors of TEXTS, and the folder of the exported encoder."""
    encoder = ENCODERS[request.param]()
    base = tmp_path_factory.mktemp("exported") / request.param
    return encoder.encode(TEXTS), export_encoder(encoder, base)


def test_vectors_have_unit_length(exported: tuple) -> None:
    expected, folder = exported
    vectors = SavedEncoder(folder).encode(TEXTS)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(vectors, expected, atol=1e-6)


def test_fresh_process_gives_the_same_numbers(exported: tuple) -> None:
    """By TensorFlow and TF.Text alone: without this package."""
    expected, folder = exported
    script = (
        "import json, sys, tensorflow as tf, tensorflow_text\n"
        "serve = tf.saved_model.load(sys.argv[1])"
        ".signatures['serving_default']\n"
        "texts = [t.encode('latin-1') for t in json.load(sys.stdin)]\n"
        "print(json.dumps(serve(text=tf.constant(texts))['embedding']"
        ".numpy().tolist()))"
    )
    texts = [t.encode() if isinstance(t, str) else t for t in TEXTS]
    done = subprocess.run(
        [sys.executable, "-c", script, folder],
        input=json.dumps([t.decode("latin-1") for t in texts]),
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    np.testing.assert_allclose(json.loads(done.stdout), expected, atol=1e-6)


def test_cpp_loader_gives_the_same_numbers(exported: tuple) -> None:
    expected, folder = exported
    vectors = run_in_cpp(folder, TEXTS)
    np.testing.assert_allclose(vectors, expected, atol=1e-6)


def test_stock_servers_have_every_op(exported: tuple) -> None:
    _, folder = exported
    ops = serving_ops(folder)
    assert "TFText>WhitespaceTokenizeWithOffsetsV2" in ops
    assert ops <= stock_ops()


def test_batch_of_none(exported: tuple) -> None:
    expected, folder = exported
    assert SavedEncoder(folder).encode([]).shape == (0, expected.shape[1])


@pytest.fixture(scope="module")
def retriever(tmp_path_factory: pytest.TempPathFactory) -> tuple:
    """Encoders, titles and the retriever exported from them."""
    query, document = dssm.LSTMEncoder(4), dssm.LSTMEncoder(4)
    titles = [f"title number {i}" for i in range(50)]
    base = tmp_path_factory.mktemp("retriever") / "retriever"
    ids = [f"id-{i}" for i in range(50)]
    folder = export_retriever(query, document, ids, titles, base)
    return query, document, titles, folder


def test_retriever_finds_the_nearest(retriever: tuple) -> None:
    query, document, titles, folder = retriever
    asked = ["number seven", "title", ""]
    cosines = query.encode(asked) @ document.encode(titles).T
    found = SavedRetriever(folder).search(asked, k=3)
    for row, hits in zip(cosines, found, strict=True):
        best = np.argsort(-row)[:3]
        assert [hit.id for hit in hits] == [f"id-{i}" for i in best]
        np.testing.assert_allclose(
            [hit.score for hit in hits], row[best], atol=1e-6
        )


def test_each_row_has_its_own_k(retriever: tuple) -> None:
    import tensorflow as tf

    folder = retriever[-1]
    loaded = SavedRetriever(folder)
    found = loaded._serve(
        text=tf.constant(["title", "title", "title"]), k=tf.constant([1, 3, 0])
    )
    assert found["ids"].shape == (3, 3)
    ids, scores = found["ids"].numpy(), found["scores"].numpy()
    assert ids[0, 0] == ids[1, 0]
    assert ids[0, 1:].tolist() == [b"", b""]
    assert scores[0, 1:].tolist() == scores[2, :2].tolist() == [-2, -2]
    assert [len(hits) for hits in loaded.search(["title"], k=99)] == [50]
    assert loaded.search([], k=2) == []


def test_retriever_loads_in_stock_servers(retriever: tuple) -> None:
    assert serving_ops(retriever[-1]) <= stock_ops()


def test_wrong_ids_and_wrong_folders_are_refused(
    retriever: tuple, tmp_path: pathlib.Path
) -> None:
    query, document, _, folder = retriever
    with pytest.raises(InputError, match="2 titles and 1 ids"):
        export_retriever(query, document, ["a"], ["x", "y"], tmp_path)
    with pytest.raises(InputError, match=r"inputs are \['k', 'text'\]"):
        SavedEncoder(folder)
    with pytest.raises(InputError, match="no SavedModel"):
        SavedRetriever(tmp_path)
