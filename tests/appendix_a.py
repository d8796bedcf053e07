"""NumPy transcription of Appendix A of Palangi et al. 2016, (9) to (44).

Terms of one encoder each; docs/mathematics.md lists the printed errors."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tests.reference import Gate, lstm, rnn


def toward(vector: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Compute v of (15), the gradient of R by `vector`, with (12)."""
    a = vector @ other
    b, c = 1 / np.linalg.norm(vector), 1 / np.linalg.norm(other)
    return b * c * other - a * b**3 * c * vector


def rnn_gradients(
    W: np.ndarray, W_rec: np.ndarray, bias: np.ndarray,
    words: Sequence[Any], other: np.ndarray, steps: int,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Compute a term of dR/dW_rec (9) and dR/dW (13), tau = 0 .. steps."""
    y = np.vstack([np.zeros(len(bias)), rnn(W, W_rec, bias, words)])
    time = len(words)
    delta = (1 - y[time]) * (1 + y[time]) * toward(y[time], other)  # (11)
    by_recurrent, by_input = np.zeros_like(W_rec), np.zeros_like(W)
    for t in range(time, max(time - steps - 1, 0), -1):
        by_recurrent += np.outer(delta, y[t - 1])
        by_input += np.outer(delta, words[t - 1])
        delta = (1 - y[t - 1]) * (1 + y[t - 1]) * (W_rec.T @ delta)  # (10)
    return by_recurrent, by_input


def lstm_gradients(
    gate: Mapping[str, Gate], words: Sequence[Any], v: np.ndarray,
    steps: int, peephole_path: bool,
) -> dict[str, Gate]:  # fmt: skip
    """Compute a term of the gradients of R, (16) to (42), with v of (15).

    Recursions over c go back so many steps; y(t-1) are constants. With
    `peephole_path`, W_p1' delta^rec1, which the paper lacks, is added."""
    states = lstm(gate, words)
    start = np.zeros((1, len(v)))
    i, f, g, c, o, y = (np.vstack([start, states[name]]) for name in "ifgcoy")
    h = np.tanh(c)
    T = len(words)

    delta_1 = o[T] * (1 - o[T]) * h[T] * v  # (17)
    result = {
        "o": Gate(
            np.outer(delta_1, words[T - 1]),  # (18)
            np.outer(delta_1, y[T - 1]),  # (16)
            np.outer(delta_1, c[T]),  # (19)
            delta_1,  # (20)
        )
    }
    delta = (1 - h[T]) * (1 + h[T]) * o[T] * v  # (22), (30), (38)
    if peephole_path:
        delta = delta + gate["o"].W_p.T @ delta_1
    for name in set(gate) - {"o"}:
        peephole = 0 if name == "g" else 1  # y_g has none
        dc = [0.0] * 4
        for t in range(T - steps + 1, T + 1):
            b = factor(name, i[t], f[t], g[t], c[t - 1])
            inputs = (words[t - 1], y[t - 1], peephole * c[t - 1], np.ones(1))
            # W (24, 32, 40), W_rec (22, 30, 38), W_p (26, 34), b (28, 36, 42)
            dc = [
                f[t][:, np.newaxis] * old + np.outer(b, x)
                for old, x in zip(dc, inputs, strict=True)
            ]
        # (23, 31, 39), (21, 29, 37), (25, 33), (27, 35, 41)
        W, W_rec, W_p, bias = (np.diag(delta) @ matrix for matrix in dc)
        result[name] = Gate(W, W_rec, W_p, bias[:, 0])
    return result


def factor(
    name: str, i: np.ndarray, f: np.ndarray, g: np.ndarray, before: np.ndarray
) -> np.ndarray:
    """Compute b_i (22), b_f (30) or b_g (38); `before` is c(t-1)."""
    return {
        "i": g * i * (1 - i),
        "f": before * f * (1 - f),
        "g": i * (1 - g) * (1 + g),
    }[name]
