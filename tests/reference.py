"""Transcriptions of Palangi et al. 2016 in plain Python and NumPy.

One text at a time, of column vectors; l(t) are dense trigram counts."""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tests import plain_signs

LETTERS = "#abcdefghijklmnopqrstuvwxyz0123456789"
WHITE_SPACE = re.compile(
    "[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+"
)


# Unicode's property Default_Ignorable_Code_Point.
IGNORABLE = re.compile(
    "[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def split(text: str, kind: str = "space") -> list[str]:
    """Split a text into words, after rules for signs, NFKC and case folding.

    `"alphanumeric"` keeps letters, digits and marks; `"stems"` cuts these."""
    folded = unicodedata.normalize("NFKC", plain_signs.before(text)).casefold()
    folded = unicodedata.normalize("NFKC", IGNORABLE.sub("", folded))
    folded = plain_signs.after(folded)
    if kind in ("alphanumeric", "stems"):
        folded = "".join(
            x if unicodedata.category(x)[0] in "LNM" else " " for x in folded
        )
    words = [word for word in WHITE_SPACE.split(folded) if word] or ["#"]
    return [stem(word) for word in words] if kind == "stems" else words


def stem(word: str) -> str:
    """Cut the English endings of plurals and verbs of a word."""
    if re.search("[^ea]ies$", word):
        word = word[:-3] + "y"
    if re.search("(x|ch|sh|ss|z)es$", word):
        word = word[:-2]
    if re.search("[^us]s$", word):
        word = word[:-1]
    for ending in ("ing", "ed"):
        rest = word.removesuffix(ending)
        if rest != word and len(rest) >= 4 and rest[-4:].isalpha():
            return rest
    return word


def trigrams(word: str, oov_buckets: int = 0) -> list[int]:
    """List the ids of the trigrams of `#word#`.

    The id of letters is (c1 * 37 + c2) * 37 + c3; with `oov_buckets`, a trigram
    with another character is hashed from its code points, 0 past the ends."""
    points = [0, *map(ord, word), 0]
    letters = "#" + word + "#"
    ids = []
    for place in range(len(word)):
        triple = letters[place : place + 3]
        if oov_buckets and not set(triple) <= set(LETTERS):
            first, second, third = points[place : place + 3]
            mixed = (
                815_730_721_573 * first
                + 678_223_072_849 * second
                + 1_004_195_369_209 * third
            )
            ids.append(37**3 + mixed % (2**31 - 1) % oov_buckets)
        else:
            first, second, third = (max(LETTERS.find(x), 0) for x in triple)
            ids.append((first * 37 + second) * 37 + third)
    return ids


def counts(word: str) -> np.ndarray:
    """Compute l(t) = W_h x(t), the count of each of the 50,653 trigrams."""
    return np.bincount(trigrams(word), minlength=37**3).astype("float64")


def sigmoid(x: np.ndarray) -> np.ndarray:
    """Compute the logistic function, sigma in (2)."""
    return 1 / (1 + np.exp(-x))


class Gate(NamedTuple):
    """W, W_rec, W_p and b of one gate, or the gradients of a loss by them."""

    W: np.ndarray
    W_rec: np.ndarray
    W_p: np.ndarray
    b: np.ndarray


def gates(
    cell: Any, kernel: Any, recurrent_kernel: Any, bias: Any,
    peepholes: Mapping[str, Any],
) -> dict[str, Gate]:  # fmt: skip
    """Split a cell's weights, or their gradients, into the gates of (2)."""
    result = {}
    for number, name in enumerate(cell.gates):
        columns = slice(number * cell.units, (number + 1) * cell.units)
        peephole = np.asarray(peepholes.get(name, np.zeros(cell.units)))
        result[name] = Gate(
            np.asarray(kernel)[:, columns].T,
            np.asarray(recurrent_kernel)[:, columns].T,
            peephole if peephole.ndim == 2 else np.diag(peephole),
            np.asarray(bias)[columns],
        )
    return result


def gates_of(cell: Any, kernel: Any) -> dict[str, Gate]:
    """Split the weights of a `PeepholeLSTMCell`, with W from `kernel`."""
    return gates(cell, kernel, cell.recurrent_kernel, cell.bias, cell.peepholes)


def rnn(
    W: np.ndarray, W_rec: np.ndarray, b: np.ndarray, words: Sequence[Any]
) -> np.ndarray:
    """Compute y(1) .. y(T) of (1), `[time, units]`."""
    y = [np.zeros(len(b))]
    for word in words:
        y.append(np.tanh(W @ word + W_rec @ y[-1] + b))
    return np.array(y[1:])


def lstm(gate: Mapping[str, Gate], words: Sequence[Any]) -> dict[str, Any]:
    """Compute i, f, g, c, o and y of (2) at each word, `[time, units]`."""
    units = len(gate["g"].b)
    y, c = np.zeros(units), np.zeros(units)
    steps = []
    for word in words:
        z = {
            name: weights.W @ word + weights.W_rec @ y + weights.b
            for name, weights in gate.items()
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
    """Compute y of the DSSM; `layers` has (W, b) of each further layer."""
    y = W1 @ np.sum(words, axis=0)
    for W, b in layers:
        y = np.tanh(W @ y + b)
    return y


def clsm(
    W_c: np.ndarray, b_c: np.ndarray, W_s: np.ndarray, b_s: np.ndarray,
    words: Sequence[Any],
) -> np.ndarray:  # fmt: skip
    """Compute y of the CLSM; W_c is as wide as the words of a window."""
    width = len(words[0])
    half = W_c.shape[1] // width // 2
    zeros = [np.zeros(width)] * half
    padded = [*zeros, *words, *zeros]
    h = [
        np.tanh(W_c @ np.concatenate(padded[t : t + 2 * half + 1]) + b_c)
        for t in range(len(words))
    ]
    return np.tanh(W_s @ np.max(h, axis=0) + b_s)


def cosine(query: np.ndarray, document: np.ndarray) -> float:
    """Compute R(Q, D), (3)."""
    norms = np.linalg.norm(query) * np.linalg.norm(document)
    return query @ document / norms


def nesterov(
    gradient: Callable[[int, list[np.ndarray]], list[np.ndarray]],
    parameters: Sequence[np.ndarray], momenta: Sequence[float], step: float,
    threshold: float = np.inf,
) -> list[list[np.ndarray]]:  # fmt: skip
    """Compute Lambda_0, Lambda_1, .. of (6).

    Each parameter's gradient is renormalised on its own to `threshold`."""
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
