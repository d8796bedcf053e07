"""The peer of KeyVec computes what KeyVec computes; the suite's figures."""

import sys
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.benchmarks import documents_suite
from keras_lstm_dssm.data import Document, DocumentFolder, write_documents
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.losses import KeyVecLoss
from keras_lstm_dssm.models import KeyVec
from tests.benchmarks.conftest import measure_once
from tests.benchmarks.peer_weights import check_gradients, copy_weights
from tests.models.small_keyvec import DOCUMENTS, ragged_examples, small_keyvec


def with_equal_weights(packed: bool) -> tuple[KeyVec, Any]:
    pytest.importorskip("torch")
    ours = small_keyvec()
    ours.compile(keras.optimizers.Adam(0.02), KeyVecLoss())
    form = "torch_packed" if packed else "torch_padded"
    peer = documents_suite.new_peers(ours)[form]
    peer.model.double()
    copy_weights(peer.model, arrays_of(ours))
    return ours, peer


def arrays_of(model: KeyVec) -> list[np.ndarray]:
    """List our weights in the order and the layout of the peer."""
    (table,) = model.words.get_weights()
    arrays = [np.vstack([np.zeros_like(table[:1]), table])]
    encoder, reader = model.sentence_encoder, model.reader
    biases = np.split(encoder.bias.numpy(), len(encoder.windows))
    for kernel, bias in zip(encoder.kernels, biases, strict=True):
        arrays += [kernel.numpy().transpose(2, 1, 0), bias]
    for layer in (reader.forward_lstm, reader.backward_lstm):
        kernel, recurrent, bias = layer.get_weights()
        # Both have the gates i, f, g, o; PyTorch has two biases.
        arrays += [kernel.T, recurrent.T, bias, np.zeros_like(bias)]
    for dense in (
        reader.score, model.document_encoder.dense, model.word_scores,
    ):  # fmt: skip
        kernel, bias = dense.get_weights()
        arrays += [kernel.T, bias]
    return arrays


def test_equal_weights_give_equal_vectors_losses_and_gradients(
    float64: None,
) -> None:
    pytest.importorskip("torch")
    from keras_lstm_dssm.benchmarks.torch_keyvec import torch_examples

    ours, peer = with_equal_weights(packed=True)
    found = np.concatenate(
        [peer.encode(peer.prepare([one], 1)) for one in DOCUMENTS]
    )
    expected = ours.encode(DOCUMENTS)
    assert np.ptp(expected, axis=0).min() > 1e-3
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    together = peer.encode(peer.prepare(DOCUMENTS, len(DOCUMENTS)))
    order = sorted(range(len(DOCUMENTS)), key=lambda n: len(DOCUMENTS[n]))
    np.testing.assert_allclose(together, expected[order], rtol=1e-9)
    batch = ours.hasher(*ragged_examples())
    examples = torch_examples(batch)
    examples = examples._replace(salient=examples.salient.double())
    variables = ours.trainable_variables
    with tf.GradientTape() as tape:
        loss = ours.batch_loss(batch, training=True)
    assert peer.step(examples) == pytest.approx(float(loss), rel=1e-9)
    gradients = tape.gradient(loss, [v.value for v in variables])
    zeros = check_gradients(
        ours, gradients, peer.model, arrays_of, rtol=1e-7, atol=1e-10
    )
    assert zeros == 2  # PyTorch's second biases


def test_padded_documents_of_one_length_have_the_same_vectors(
    float64: None,
) -> None:
    documents = [["Wood glue", "Hex"], ["the lamp of the wood", "Drill"]]
    vectors = []
    for packed in (True, False):
        ours, peer = with_equal_weights(packed)
        vectors.append(peer.encode(peer.prepare(documents, 2)))
    np.testing.assert_allclose(*vectors, rtol=1e-12)
    np.testing.assert_allclose(vectors[0], ours.encode(documents), rtol=1e-9)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> DocumentFolder:
    """Writes documents of 2 to 5 different sentences."""
    path = tmp_path_factory.mktemp("documents_suite") / "data"
    return write_documents(
        path,
        [
            Document(
                f"d{n}", "", [f"hat s{n} x{row}" for row in range(2 + n % 4)],
                ["A red hat."],
            )
            for n in range(6)
        ],
        {}, {},
    )  # fmt: skip


def test_figures_and_ratios(
    folder: DocumentFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents_suite, "interleaved_medians", measure_once)
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(
        sys.modules, "keras_lstm_dssm.benchmarks.torch_keyvec", False
    )
    small = {"word_dimension": 3, "filters": 2, "units": 2, "dimension": 3}
    recipe = documents_suite.RECIPE.replace(**small, min_count=1)
    monkeypatch.setattr(documents_suite, "RECIPE", recipe)
    monkeypatch.setattr(documents_suite, "LENGTHS", (2, 9, 1000))
    figures = documents_suite.measure_documents(folder, 2, 1, 1)
    assert list(figures) == ["train", "encode", "growth"]
    train, encode, growth = figures.values()
    assert (train["documents"], encode["documents"]) == (2, 2)
    assert encode["sentences"] == 2 + 3
    for rates in (train, encode):
        assert list(rates) == ["documents", "sentences", "ours"]
        ours, seconds = rates["ours"], rates["ours"]["ms"] / 1000
        for name in ("documents", "sentences"):
            assert ours[f"{name}_per_second"] == pytest.approx(
                rates[name] / seconds
            )
    assert list(growth) == ["2", "9", "ratio"]
    for name in ("train_us", "train_cpu_us", "encode_us", "encode_cpu_us"):
        assert growth["ratio"][name] == pytest.approx(
            growth["9"][name] / growth["2"][name]
        )
    with pytest.raises(InputError, match="found 6 documents to train"):
        documents_suite.measure_documents(folder, 7, 1, 1)


def test_documents_of_one_length_have_every_sentence_once() -> None:
    found = documents_suite._cut([f"s{n}" for n in range(8)], 3)
    assert found == [["s0", "s1", "s2"], ["s3", "s4", "s5"]]
