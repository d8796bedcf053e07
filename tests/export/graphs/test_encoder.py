"""Exported encoders give the encoders' own numbers, wherever they are run."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from keras_lstm_dssm.export import export_model
from keras_lstm_dssm.text.strings import as_bytes
from keras_lstm_dssm.text.word_hashing import MAX_BYTES_PER_WORD, MAX_LETTERS
from tests.encoders.small import small_encoder
from tests.export.agreement import check_export, loaded
from tests.serving.wire import predict_request

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
    "rnn": lambda: dssm.RNNEncoder(6, dtype="float64"),
    "dssm": lambda: dssm.DSSMEncoder([6, 4]),
    "combined": lambda: dssm.CombinedEncoder(
        4, bag=4, sketch=7, length_norm=0.5
    ),
    "clsm": lambda: dssm.CLSMEncoder(window=3, filters=6, units=4),
    "word_sum": lambda: small_encoder("word_sum", oov_buckets=64),
    "combined_words": lambda: small_encoder("combined_words"),
}


class Exported(NamedTuple):
    """Expected vectors of TEXTS, and the folder of the exported encoder."""

    expected: np.ndarray
    folder: Path


@pytest.fixture(scope="module")
def exports(tmp_path_factory) -> dict[str, Exported]:
    """One encoder of each kind."""
    base = tmp_path_factory.mktemp("exported")
    encoders = {name: new() for name, new in ENCODERS.items()}
    return {
        name: Exported(encoder.encode(TEXTS), export_model(encoder, base))
        for name, encoder in encoders.items()
    }


@pytest.fixture(params=ENCODERS)
def exported(request, exports: dict[str, Exported]) -> Exported:
    return exports[request.param]


def serve(folder: Path, texts: list[str | bytes]) -> np.ndarray:
    """Calls a version's signature."""
    outputs = loaded(folder).signatures["serving_default"](
        text=tf.constant(as_bytes(texts), tf.string, [len(texts)])
    )
    return outputs["embedding"].numpy()


def test_vectors_have_unit_length(exported):
    expected, folder = exported
    vectors = serve(folder, TEXTS)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert vectors.dtype == np.float32
    atol = 1e-7 if expected.dtype == np.float64 else 1e-6
    np.testing.assert_allclose(vectors, expected, atol=atol)
    assert serve(folder, []).shape == (0, expected.shape[1])


def test_one_text_has_the_vector_that_it_has_among_others(exported):
    """One short text is encoded by operations of its own."""
    model = loaded(exported.folder)
    for text, expected in zip(as_bytes(TEXTS), exported.expected, strict=True):
        vector = model.signatures["serving_default"](tf.constant([text]))
        np.testing.assert_allclose(vector["embedding"][0], expected, atol=1e-6)


def test_cpp_loader_gives_the_same_numbers(exports):
    request = predict_request("x", text=as_bytes(TEXTS))
    outputs = check_export(
        *((export.folder, request) for export in exports.values())
    )
    for output, export in zip(outputs, exports.values(), strict=True):
        np.testing.assert_allclose(
            output["embedding"], export.expected, atol=1e-6
        )


def test_long_texts_and_words_are_cut_in_the_graph(exports):
    """A request cannot make the server hash megabytes."""
    texts = [
        *("a" * MAX_LETTERS, "a" * 1_000_000),
        *("", " " * 128 * MAX_BYTES_PER_WORD + "bolt"),
    ]
    word, long_word, empty, late = serve(exports["rnn"].folder, texts)
    np.testing.assert_array_equal(word, long_word)
    np.testing.assert_array_equal(empty, late)
