"""Gradients of R(Q, D) against Appendix A of the paper, (9) to (44)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm import PeepholeLSTM, Recurrent, RNNCell
from keras_lstm_dssm.ops import cosine_pairs
from tests import appendix_a, reference
from tests.reference import Gate

FEATURES, UNITS = 5, 3
RANDOM = np.random.default_rng(2)
QUERY = RANDOM.normal(size=(3, FEATURES))
DOCUMENT = RANDOM.normal(size=(4, FEATURES))
OTHER = RANDOM.normal(size=(2, FEATURES))
TEXTS = (QUERY, DOCUMENT)

pytestmark = pytest.mark.usefixtures("float64")


def randomised(layer: Recurrent) -> Recurrent:
    width = FEATURES if layer.cell.project_inputs else 4 * UNITS
    layer.build((1, None, width))
    for variable in layer.variables:
        variable.assign(RANDOM.normal(size=variable.shape) * 0.8)
    return layer


def lstms(**zero: bool) -> list[PeepholeLSTM]:
    """Make two LSTMs with full peepholes, of which the named are zero."""
    layers = []
    for _ in TEXTS:
        layer = PeepholeLSTM(UNITS, "full", forget_gate=True, truncate=0)
        layers.append(randomised(layer))
        for name in zero:
            peephole = layer.cell.peepholes[name]
            peephole.assign(np.zeros(peephole.shape))
    return layers


def weights(layer: PeepholeLSTM) -> dict[str, Gate]:
    return reference.gates_of(layer.cell, layer.cell.kernel)


def gradients(
    tape: tf.GradientTape, cosine: tf.Tensor, layer: PeepholeLSTM
) -> dict[str, Gate]:
    """Compute TensorFlow's gradients of R by one LSTM's weights."""
    cell = layer.cell
    weights = [cell.kernel, cell.recurrent_kernel, cell.bias]
    weights += cell.peepholes.values()
    by_weight = tape.gradient(cosine, [v.value for v in weights])
    peepholes = dict(zip(cell.peepholes, by_weight[3:], strict=True))
    return reference.gates(cell, *by_weight[:3], peepholes)


def expected(
    layers: Sequence[PeepholeLSTM], steps: int | None, peephole_path: bool
) -> list[dict[str, Gate]]:
    """Compute the paper's gradients for the query and the document LSTM."""
    final = [
        reference.lstm(weights(layer), words)["y"][-1]
        for layer, words in zip(layers, TEXTS, strict=True)
    ]
    return [
        appendix_a.lstm_gradients(
            weights(layer), words, appendix_a.toward(vector, other),
            steps or len(words), peephole_path,
        )
        for layer, words, vector, other in zip(
            layers, TEXTS, final, final[::-1], strict=True
        )
    ]  # fmt: skip


def one_step(layers: Sequence[PeepholeLSTM]) -> list[dict[str, Gate]]:
    """Compute TensorFlow's gradients, earlier states being constants."""
    with tf.GradientTape(persistent=True) as tape:
        query, document = (
            layer(tf.constant(words[np.newaxis]))
            for layer, words in zip(layers, TEXTS, strict=True)
        )
        cosine = cosine_pairs(query, document)
    return [gradients(tape, cosine, layer) for layer in layers]


def equal(
    computed: Sequence[dict[str, Gate]],
    printed: Sequence[dict[str, Gate]],
    gates: str = "oifg",
) -> bool:
    """Return whether all gradients of these gates agree to rounding."""
    return all(
        np.allclose(gradient, other, rtol=1e-10, atol=1e-13)
        for ours, paper in zip(computed, printed, strict=True)
        for gate in gates
        for gradient, other in zip(ours[gate], paper[gate], strict=True)
    )


def test_output_gate():
    """(16) to (20), with peepholes everywhere."""
    layers = lstms()
    assert equal(one_step(layers), expected(layers, 1, False), "o")


def test_other_gates_as_printed_hold_without_output_peephole():
    """(21) to (42) of one step are exact when W_p1 is zero."""
    layers = lstms(o=True)
    computed = one_step(layers)
    assert equal(computed, expected(layers, 1, False))
    assert min(abs(w).max() for w in computed[0]["f"]) > 1e-3  # not all 0


def test_other_gates_need_the_path_through_the_output_peephole():
    """With W_p1, (22), (30), (38) lack W_p1' delta^rec1."""
    layers = lstms()
    computed = one_step(layers)
    assert equal(computed, expected(layers, 1, peephole_path=True))
    for gate in "ifg":
        assert not equal(computed, expected(layers, 1, False), gate)


def test_recursions_over_the_cell():
    """(22) to (42) over all steps, y(t-1) constant, peepholes zero.

    The recursions follow c alone, through diag(f); so c(t-1) must not act
    on the gates either. The gradients of the zero peepholes are compared
    too: (26) and (34).
    """
    layers = lstms(i=True, f=True, o=True)
    with tf.GradientTape(persistent=True) as tape:
        final = []
        for layer, words in zip(layers, TEXTS, strict=True):
            y, c = tf.zeros([2, 1, UNITS], tf.float64)
            for word in words:
                step = tf.constant(word[np.newaxis])
                y, (_, c) = layer.cell(step, [tf.stop_gradient(y), c])
            final.append(y)
        cosine = cosine_pairs(*final)
    computed = [gradients(tape, cosine, layer) for layer in layers]
    assert equal(computed, expected(layers, None, peephole_path=False))
    assert not equal(computed, expected(layers, 1, peephole_path=False), "i")


def through_one_gate(
    gate: str,
) -> tuple[dict[str, np.ndarray], np.ndarray, dict[str, Gate], Any]:
    """Differentiate R where the last step reads y(t-1) by one gate only.

    Returns:
        The gradients by the output gate's input `o` and by the cell state
        `c` at t-1; v; the weights; and all activations.
    """
    layer = PeepholeLSTM(UNITS, None, forget_gate=True, project_inputs=False)
    cell = randomised(layer).cell
    words = tf.constant(RANDOM.normal(size=(3, 1, 4 * UNITS)))
    is_gate = np.array(cell.gates) == gate
    column = np.repeat(is_gate, UNITS).astype("float64")
    document = tf.constant(RANDOM.normal(size=UNITS))
    _, states = cell(words[0], list(tf.zeros([2, 1, UNITS], tf.float64)))
    with tf.GradientTape() as tape:
        before = tf.identity(words[1])
        tape.watch(before)
        y, (_, c) = cell(before, states)
        constant = [tf.stop_gradient(y), tf.stop_gradient(c)]
        path = (y - constant[0]) @ cell.recurrent_kernel.value * column
        last, _ = cell(words[2] + path, constant)
        cosine = cosine_pairs(last, document)
    by_input, by_cell = tape.gradient(cosine, [before, c])
    weights = reference.gates_of(cell, np.eye(4 * UNITS))
    by_o_and_c = {"o": by_input.numpy()[0, -UNITS:], "c": by_cell.numpy()[0]}
    activations = reference.lstm(weights, words[:, 0].numpy())
    v = appendix_a.toward(activations["y"][-1], document.numpy())
    return by_o_and_c, v, weights, activations


def test_error_signal_through_the_output_gate():
    """(43)."""
    computed, v, weight, states = through_one_gate("o")
    o, h = states["o"], np.tanh(states["c"])
    delta = o[2] * (1 - o[2]) * h[2] * v  # (17)
    before = o[1] * (1 - o[1]) * h[1] * (weight["o"].W_rec.T @ delta)
    np.testing.assert_allclose(computed["o"], before, rtol=1e-10)


@pytest.mark.parametrize("gate", ["i", "f", "g"])
def test_error_signal_through_the_other_gates(gate):
    """(44) holds for the error signal at c with the factor b(t).

    delta(t) of (22), (30), (38) is the derivative by c(t). The derivative by
    y(t-1) also has the factor d c(t) / d net(t) = b(t), which (44) omits.
    """
    computed, v, weight, states = through_one_gate(gate)
    i, f, g, c, o = (states[name] for name in "ifgco")
    h = np.tanh(c)
    delta = (1 - h[2]) * (1 + h[2]) * o[2] * v
    squash = (1 - h[1]) * (1 + h[1]) * o[1]
    b = appendix_a.factor(gate, i[2], f[2], g[2], c[1])
    W_rec = weight[gate].W_rec
    right = squash * (W_rec.T @ (b * delta))
    np.testing.assert_allclose(computed["c"], right, rtol=1e-10)
    as_printed = squash * (W_rec.T @ delta)
    assert not np.allclose(computed["c"], as_printed, rtol=0.01)


@pytest.mark.parametrize("truncate", [0, 1, 2, None])
def test_rnn(truncate):
    """(9) to (13): d Delta_j, the sum over tau = 0 .. T of (7)."""
    layers = [randomised(Recurrent(RNNCell(UNITS), truncate)) for _ in TEXTS]
    texts = (QUERY, DOCUMENT, OTHER)
    with tf.GradientTape(persistent=True) as tape:
        query, clicked, other = (
            layer(tf.constant(words[np.newaxis]))
            for layer, words in zip([*layers, layers[1]], texts, strict=True)
        )
        delta = cosine_pairs(query, clicked) - cosine_pairs(query, other)
    terms: list[list[Any]] = [
        [(QUERY, clicked, 1), (QUERY, other, -1)],
        [(DOCUMENT, query, 1), (OTHER, query, -1)],
    ]
    for layer, term in zip(layers, terms, strict=True):
        cell = layer.cell
        matrices = cell.kernel.numpy().T, cell.recurrent_kernel.numpy().T
        parts = [
            sign * np.hstack(
                appendix_a.rnn_gradients(
                    *matrices, cell.bias.numpy(), words, seen.numpy()[0],
                    99 if truncate is None else truncate,
                )
            )
            for words, seen, sign in term
        ]  # fmt: skip
        by_weight = tape.gradient(
            delta, [cell.recurrent_kernel.value, cell.kernel.value]
        )
        np.testing.assert_allclose(
            np.vstack(by_weight).T, sum(parts), rtol=1e-10, atol=1e-13
        )
