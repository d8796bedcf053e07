"""The peers of pair scorers compute what the models compute."""

import sys
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.benchmarks import matching_suite
from keras_lstm_dssm.data import Triples
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.models import PairScorer
from tests.benchmarks.conftest import measure_once
from tests.benchmarks.peer_weights import check_gradients, copy_weights

VOCABULARY = ["bolt", "drill", "glue", "hex", "kit", "steel", "volt", "wood"]
TRIPLES = (
    ["hex bolt", "wood glue", "unknown"],
    ["steel hex bolt 3 in", "glue", "drill"],
    ["glue", "18 volt drill kit", "bolt of steel"],
)


def with_equal_weights(preset: str, packed: bool) -> tuple[PairScorer, Any]:
    pytest.importorskip("torch")
    scorer = matching_suite._new_scorer(preset, VOCABULARY)
    form = "torch_packed" if packed else "torch_padded"
    peer = matching_suite._new_peers(preset, scorer)[form]
    random = np.random.default_rng(0)
    for variable in scorer.trainable_variables:
        variable.assign(random.normal(size=variable.shape) * 0.3)
    copy_weights(peer.matcher, arrays_of(scorer))
    return scorer, peer


def arrays_of(scorer: PairScorer) -> list[np.ndarray]:
    """List our weights in the order and the layout of the peer."""
    (table,) = scorer.words.get_weights()
    matcher = scorer.matcher
    two_ways = hasattr(matcher, "query_positions")
    layers = (
        [
            matcher.query_positions.forward_lstm,
            matcher.query_positions.backward_lstm,
        ]
        if two_ways
        else matcher.query_lstms
    )
    lstm: list[np.ndarray] = []
    for layer in layers:
        kernel, recurrent, bias = layer.get_weights()
        # Both have the gates i, f, g, o; PyTorch has two biases.
        lstm += [kernel.T, recurrent.T, bias, np.zeros_like(bias)]
    if not two_ways:
        return [table, *lstm]
    matrices, linear, bias = matcher.comparison.get_weights()
    W_r, b_r, W_s, b_s = matcher.mlp.get_weights()
    return [matrices, table, *lstm, linear, bias, W_r.T, b_r, W_s.T, b_s]


def hashed(peer: Any, triples: Any) -> tuple[Any, Any]:
    from keras_lstm_dssm.benchmarks.torch_matching import torch_texts

    query, positive, negative = triples
    return (
        torch_texts(peer.words, tf.constant(query)),
        torch_texts(peer.words, tf.constant(positive + negative)),
    )


@pytest.mark.parametrize("preset", matching_suite.PRESETS)
def test_equal_weights_give_equal_scores_and_equal_gradients(
    preset: str,
) -> None:
    scorer, peer = with_equal_weights(preset, packed=True)
    texts = hashed(peer, TRIPLES)
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


@pytest.mark.parametrize("preset", matching_suite.PRESETS)
def test_padded_sequences_of_one_length_score_the_same(preset: str) -> None:
    _, packed = with_equal_weights(preset, packed=True)
    _, padded = with_equal_weights(preset, packed=False)
    triples = [["hex bolt"], ["steel glue"], ["wood kit"]]
    texts = hashed(packed, triples)
    np.testing.assert_allclose(
        padded.matcher(*texts).detach().numpy(),
        packed.matcher(*texts).detach().numpy(),
        atol=1e-6,
    )


def test_figures_and_ratios(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching_suite, "interleaved_medians", measure_once)
    monkeypatch.setattr(matching_suite, "_CALLS", 1)
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(
        sys.modules, "keras_lstm_dssm.benchmarks.torch_matching", False
    )
    monkeypatch.setattr(matching_suite, "PRESETS", ("lstm_rnn_50",))
    triples = Triples(
        [("hex bolt", ["steel bolt"], ["glue", "lamp"]), ("a", ["b"], ["c"])]
    )
    (figures,) = matching_suite.measure_matching(triples, 2, 1, 1).values()
    assert figures.keys() == {"ours", "score"}
    ours = figures["ours"]
    assert ours["triples_per_second"] == pytest.approx(2000 / ours["step_ms"])
    assert figures["score"]["candidates"] == 5
    assert 0 < figures["score"]["ours"]["p50_ms"]
    with pytest.raises(InputError, match="3 triples, fewer .* batch of 8"):
        matching_suite.measure_matching(triples, 8, 1, 1)
    rates = matching_suite._rates(
        {
            "ours": [0.1, 0.2],
            "torch_packed": [0.4, 0.5],
            "torch_padded": [0.3, 1],
        },
        10,
    )
    assert rates["ours"]["triples_per_second"] == 100
    assert rates["ratio_torch"] == pytest.approx(3)
    assert rates["cpu_ratio_torch"] == pytest.approx(2.5)
