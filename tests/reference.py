"""Plain Python and NumPy transcriptions of Palangi et al. 2016 (spec.md).

The code is proved against these: one text at a time, column vectors as in
the paper, l(t) as the dense vector of trigram counts, no TensorFlow.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

LETTERS = "#abcdefghijklmnopqrstuvwxyz0123456789"
WHITE_SPACE = re.compile(
    "[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+"
)


def split(text: str, kind: str = "space") -> list[str]:
    """Words of a text, spec 1: NFKC, folded case, white space.

    Or, "alphanumeric", what stands between other signs than letters, digits
    and marks.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    folded = unicodedata.normalize("NFKC", folded)
    if kind == "alphanumeric":
        folded = "".join(
            x if unicodedata.category(x)[0] in "LNM" else " " for x in folded
        )
    return [word for word in WHITE_SPACE.split(folded) if word] or ["#"]


def trigrams(word: str) -> list[int]:
    """Exact codes (c1 * 37 + c2) * 37 + c3 of `#word#`, spec 1."""
    wrapped = "#" + "".join(x if x in LETTERS else "#" for x in word) + "#"
    codes = [LETTERS.index(letter) for letter in wrapped]
    return [
        (first * 37 + second) * 37 + third
        for first, second, third in zip(
            codes, codes[1:], codes[2:], strict=False
        )
    ]


def counts(word: str) -> np.ndarray:
    """l(t) = W_h x(t), the dense count of each of the 50,653 trigrams."""
    return np.bincount(trigrams(word), minlength=37**3).astype("float64")


def sigmoid(x: np.ndarray) -> np.ndarray:
    """The logistic function, sigma in (2)."""
    return 1 / (1 + np.exp(-x))


class Gate(NamedTuple):
    """W, W_rec, W_p and b of one gate, or their gradients."""

    W: np.ndarray
    W_rec: np.ndarray
    W_p: np.ndarray
    b: np.ndarray


def gates(
    cell: Any,
    kernel: Any,
    recurrent_kernel: Any,
    bias: Any,
    peepholes: Mapping[str, Any],
) -> dict[str, Gate]:
    """Takes a cell's weights (or their gradients) apart as in (2)."""
    result = {}
    for place, name in enumerate(cell.gates):
        own = slice(place * cell.units, (place + 1) * cell.units)
        peephole = np.asarray(peepholes.get(name, np.zeros(cell.units)))
        result[name] = Gate(
            np.asarray(kernel)[:, own].T,
            np.asarray(recurrent_kernel)[:, own].T,
            peephole if peephole.ndim == 2 else np.diag(peephole),
            np.asarray(bias)[own],
        )
    return result


def gates_of(cell: Any, kernel: Any) -> dict[str, Gate]:
    """The weights of a `PeepholeLSTMCell`; W comes from `kernel`."""
    return gates(cell, kernel, cell.recurrent_kernel, cell.bias, cell.peepholes)


def rnn(
    W: np.ndarray, W_rec: np.ndarray, b: np.ndarray, words: Sequence[Any]
) -> np.ndarray:
    """y(1) .. y(T) of (1), `[time, units]`."""
    y = [np.zeros(len(b))]
    for word in words:
        y.append(np.tanh(W @ word + W_rec @ y[-1] + b))
    return np.array(y[1:])


def lstm(gate: Mapping[str, Gate], words: Sequence[Any]) -> dict[str, Any]:
    """i, f, g, c, o, y of (2) at each word, `[time, units]` each."""
    units = len(gate["g"].b)
    y, c = np.zeros(units), np.zeros(units)
    steps = []
    for word in words:
        z = {
            name: one.W @ word + one.W_rec @ y + one.b
            for name, one in gate.items()
        }
        g = np.tanh(z["g"])
        i = sigmoid(z["i"] + gate["i"].W_p @ c)
        f = np.ones(units)
        if "f" in gate:
            f = sigmoid(z["f"] + gate["f"].W_p @ c)
        c = f * c + i * g
        o = sigmoid(z["o"] + gate["o"].W_p @ c)
        y = o * np.tanh(c)
        steps.append({"i": i, "f": f, "g": g, "c": c, "o": o, "y": y})
    return {name: np.array([s[name] for s in steps]) for name in steps[0]}


def dssm(
    W1: np.ndarray, layers: Sequence[tuple[Any, Any]], words: Sequence[Any]
) -> np.ndarray:
    """y of the DSSM, spec 2; each further layer is (W, b)."""
    y = W1 @ np.sum(words, axis=0)
    for W, b in layers:
        y = np.tanh(W @ y + b)
    return y


def clsm(
    W_c: np.ndarray, b_c: np.ndarray, W_s: np.ndarray, b_s: np.ndarray,
    words: Sequence[Any],
) -> np.ndarray:  # fmt: skip
    """y of the CLSM, spec 2; W_c is as wide as `win` word vectors."""
    width = len(words[0])
    half = W_c.shape[1] // width // 2
    blank = [np.zeros(width)] * half
    padded = [*blank, *words, *blank]
    h = [
        np.tanh(W_c @ np.concatenate(padded[t : t + 2 * half + 1]) + b_c)
        for t in range(len(words))
    ]
    return np.tanh(W_s @ np.max(h, axis=0) + b_s)


def cosine(query: np.ndarray, document: np.ndarray) -> float:
    """R(Q, D), (3)."""
    norms = np.linalg.norm(query) * np.linalg.norm(document)
    return query @ document / norms


def nesterov(
    gradient: Callable[[int, list[np.ndarray]], list[np.ndarray]],
    parameters: Sequence[np.ndarray],
    momenta: Sequence[float],
    step: float,
    threshold: float = np.inf,
) -> list[list[np.ndarray]]:
    """Lambda_0, Lambda_1, .. of (6), every parameter its own group th_G."""
    current = [np.array(p) for p in parameters]
    delta = [np.zeros_like(p) for p in current]
    path = [current]
    for k, mu in enumerate(momenta):
        ahead = [p + mu * d for p, d in zip(current, delta, strict=True)]
        slopes = [
            g * min(1, threshold / np.linalg.norm(g))
            for g in gradient(k, ahead)
        ]
        delta = [mu * d - step * g for d, g in zip(delta, slopes, strict=True)]
        current = [p + d for p, d in zip(current, delta, strict=True)]
        path.append(current)
    return path
