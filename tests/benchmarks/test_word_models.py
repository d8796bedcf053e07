"""The suites of word models: the peers compute what the models compute."""

import sys
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from benchmarks import word_models
from keras_lstm_dssm import data
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.models import KeyVec, PairScorer
from tests.benchmarks.conftest import compare_here, measure_once
from tests.benchmarks.peer_weights import check_gradients, copy_weights
from tests.models.small_keyvec import DOCUMENTS, compiled, ragged_examples

VOCABULARY = ["bolt", "drill", "glue", "hex", "kit", "steel", "volt", "wood"]
TRIPLES = (
    ["hex bolt", "wood glue", "unknown"],
    ["steel hex bolt 3 in", "glue", "drill"],
    ["glue", "18 volt drill kit", "bolt of steel"],
)


def torch_models() -> Any:
    """The module of the peers; without PyTorch a test is skipped."""
    pytest.importorskip("torch")
    from benchmarks.peers import torch_word_models

    return torch_word_models


def with_equal_weights(preset: str, packed: bool) -> tuple[PairScorer, Any]:
    torch_peers = torch_models()
    scorer = word_models.new_scorer(preset, VOCABULARY)
    rows = scorer.words.embedding.size
    matcher = torch_peers.MATCHERS[preset](rows, packed=packed)
    peer = torch_peers.TorchScorer(matcher)
    random = np.random.default_rng(0)
    for variable in scorer.trainable_variables:
        variable.assign(random.normal(size=variable.shape) * 0.3)
    copy_weights(peer.matcher, arrays_of(scorer))
    return scorer, peer


def lstm_arrays(*layers: Any) -> list[np.ndarray]:
    arrays: list[np.ndarray] = []
    for layer in layers:
        kernel, recurrent, bias = layer.get_weights()
        # Both have the gates i, f, g, o; PyTorch has two biases.
        arrays += [kernel.T, recurrent.T, bias, np.zeros_like(bias)]
    return arrays


def arrays_of(scorer: PairScorer) -> list[np.ndarray]:
    """List our weights in the order and the layout of the peer."""
    (table,) = scorer.words.get_weights()
    matcher = scorer.matcher
    two_ways = hasattr(matcher, "query_positions")
    if not two_ways:
        return [table, *lstm_arrays(*matcher.query_lstms)]
    both = matcher.query_positions
    lstm = lstm_arrays(both.forward_lstm, both.backward_lstm)
    matrices, linear, bias = matcher.comparison.get_weights()
    W_r, b_r, W_s, b_s = matcher.mlp.get_weights()
    return [matrices, table, *lstm, linear, bias, W_r.T, b_r, W_s.T, b_s]


def hashed(scorer: PairScorer, triples: Any) -> list[Any]:
    query, positive, negative = triples
    batch = word_models.pair_batch(
        scorer.words, tf.constant(query), tf.constant(positive + negative)
    )
    return [
        torch_models().torch_texts(batch, side)
        for side in ("query", "document")
    ]


@pytest.mark.parametrize("preset", word_models.PRESETS)
def test_equal_weights_give_equal_scores_and_equal_gradients(preset):
    scorer, peer = with_equal_weights(preset, packed=True)
    texts = hashed(scorer, TRIPLES)
    scores = peer.matcher(*texts).detach().numpy()
    for row, documents in zip(scores, TRIPLES[1:], strict=True):
        expected = scorer.score_pairs(TRIPLES[0], documents)
        assert np.ptp(expected) > 1e-3
        np.testing.assert_allclose(row, expected, atol=1e-5)
    loss = peer.step(*texts)
    query, positive, negative = (tf.constant(texts) for texts in TRIPLES)
    variables = scorer.trainable_variables
    with tf.GradientTape() as tape:
        above, below = (
            scorer((query, text), training=True)
            for text in (positive, negative)
        )
        hinge = tf.reduce_mean(tf.nn.relu(1 + below - above))
    assert loss == pytest.approx(float(hinge), abs=1e-5) and loss > 0.1
    gradients = tape.gradient(hinge, [v.value for v in variables])
    zeros = check_gradients(
        scorer, gradients, peer.matcher, arrays_of, rtol=1e-4, atol=1e-5
    )
    # PyTorch's second biases, and the bias of the score, which cancels.
    assert zeros == (3 if preset == "mv_lstm_tensor" else 1)


@pytest.mark.parametrize("preset", word_models.PRESETS)
def test_padded_sequences_of_one_length_score_the_same(preset):
    scorer, packed = with_equal_weights(preset, packed=True)
    _, padded = with_equal_weights(preset, packed=False)
    triples = [["hex bolt"], ["steel glue"], ["wood kit"]]
    texts = hashed(scorer, triples)
    np.testing.assert_allclose(
        padded.matcher(*texts).detach().numpy(),
        packed.matcher(*texts).detach().numpy(),
        atol=1e-6,
    )


def test_figures_of_pair_scorers(monkeypatch):
    monkeypatch.setattr(word_models, "compare", compare_here)
    monkeypatch.setattr(word_models, "CALLS", 1)
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr(word_models, "PRESETS", ("lstm_rnn_50",))
    triples = data.Triples(
        [("hex bolt", ["steel bolt"], ["glue", "lamp"]), ("a", ["b"], ["c"])]
    )
    (figures,) = word_models.measure_matching(triples, 2, 1, 1).values()
    assert figures.keys() == {"ours", "environments", "score"}
    assert figures["environments"] == {"ours": "here"}
    ours = figures["ours"]
    assert ours["triples_per_second"] == pytest.approx(2000 / ours["step_ms"])
    assert figures["score"]["candidates"] == 5
    assert 0 < figures["score"]["ours"]["p50_ms"]
    with pytest.raises(InputError, match="3 triples, fewer .* batch of 8"):
        word_models.measure_matching(triples, 8, 1, 1)
    seconds = {"torch_packed": [0.4, 0.5], "torch_padded": [0.3, 1]}
    ratios = word_models.torch_ratios({"ours": [0.1, 0.2], **seconds})
    assert ratios["ratio_torch"] == pytest.approx(3)
    assert ratios["cpu_ratio_torch"] == pytest.approx(2.5)


def with_equal_keyvecs(packed: bool) -> tuple[KeyVec, Any]:
    torch_peers = torch_models()
    ours = compiled()
    sizes = word_models.keyvec_sizes(ours)
    peer = torch_peers.TorchKeyVecRun(
        torch_peers.TorchKeyVec(**sizes, packed=packed)
    )
    peer.model.double()
    copy_weights(peer.model, keyvec_arrays(ours))
    return ours, peer


def keyvec_arrays(model: KeyVec) -> list[np.ndarray]:
    """List our weights in the order and the layout of the peer."""
    (table,) = model.words.get_weights()
    arrays = [np.vstack([np.zeros_like(table[:1]), table])]
    encoder, reader = model.sentence_encoder, model.reader
    biases = np.split(encoder.bias.numpy(), len(encoder.windows))
    for kernel, bias in zip(encoder.kernels, biases, strict=True):
        arrays += [kernel.numpy().transpose(2, 1, 0), bias]
    arrays += lstm_arrays(reader.forward_lstm, reader.backward_lstm)
    for dense in (
        reader.score, model.document_encoder.dense, model.word_scores,
    ):  # fmt: skip
        kernel, bias = dense.get_weights()
        arrays += [kernel.T, bias]
    return arrays


def padded(model: KeyVec, documents: list[list[str]]) -> Any:
    hashed_documents = model.hasher.documents(tf.ragged.constant(documents))
    batch = word_models.document_batch(hashed_documents)
    return torch_models().torch_documents(batch)


def test_equal_weights_give_equal_vectors_losses_and_gradients(float64):
    ours, peer = with_equal_keyvecs(packed=True)
    found = np.concatenate(
        [peer.encode([padded(ours, [one])]) for one in DOCUMENTS]
    )
    expected = ours.encode(DOCUMENTS)
    assert np.ptp(expected, axis=0).min() > 1e-3
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    together = peer.encode([padded(ours, DOCUMENTS)])
    np.testing.assert_allclose(together, expected, rtol=1e-9)
    batch = ours.hasher(*ragged_examples())
    examples = torch_models().torch_examples(word_models.example_batch(batch))
    examples = examples._replace(salient=examples.salient.double())
    variables = ours.trainable_variables
    with tf.GradientTape() as tape:
        loss = ours.batch_loss(batch, training=True)
    assert peer.step(examples) == pytest.approx(float(loss), rel=1e-9)
    gradients = tape.gradient(loss, [v.value for v in variables])
    zeros = check_gradients(
        ours, gradients, peer.model, keyvec_arrays, rtol=1e-7, atol=1e-10
    )
    assert zeros == 2  # PyTorch's second biases


def test_padded_documents_of_one_length_have_the_same_vectors(float64):
    documents = [["Wood glue", "Hex"], ["the lamp of the wood", "Drill"]]
    vectors = []
    for packed in (True, False):
        ours, peer = with_equal_keyvecs(packed)
        vectors.append(peer.encode([padded(ours, documents)]))
    np.testing.assert_allclose(*vectors, rtol=1e-12)
    np.testing.assert_allclose(vectors[0], ours.encode(documents), rtol=1e-9)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> data.DocumentFolder:
    """Writes documents of 2 to 5 different sentences."""
    path = tmp_path_factory.mktemp("word_models") / "data"
    sentences = [[f"hat s{n} x{m}" for m in range(2 + n % 4)] for n in range(6)]
    documents = [
        data.Document(f"d{number}", "", of_one, ["A red hat."])
        for number, of_one in enumerate(sentences)
    ]
    return data.write_documents(path, documents, {}, {})


def test_figures_of_documents(folder, monkeypatch):
    monkeypatch.setattr(word_models, "compare", compare_here)
    monkeypatch.setattr(word_models, "interleaved_medians", measure_once)
    monkeypatch.setitem(sys.modules, "torch", None)
    small = {"word_dimension": 3, "filters": 2, "units": 2, "dimension": 3}
    recipe = word_models.RECIPE.replace(**small, min_count=1)
    monkeypatch.setattr(word_models, "RECIPE", recipe)
    monkeypatch.setattr(word_models, "LENGTHS", (2, 9, 1000))
    figures = word_models.measure_documents(folder, 2, 1, 1)
    assert list(figures) == ["train", "encode", "growth"]
    train, encode, growth = figures.values()
    assert (train["documents"], encode["documents"]) == (2, 2)
    assert encode["sentences"] == 2 + 3
    for rates in (train, encode):
        assert list(rates) == [
            "documents", "sentences", "ours", "environments",
        ]  # fmt: skip
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
    with pytest.raises(InputError, match="found 6 doc.* a batch of 7; give a"):
        word_models.measure_documents(folder, 7, 1, 1)


def test_documents_of_one_length_have_every_sentence_once():
    found = word_models._cut_documents([f"s{n}" for n in range(8)], 3)
    assert found == [["s0", "s1", "s2"], ["s3", "s4", "s5"]]
