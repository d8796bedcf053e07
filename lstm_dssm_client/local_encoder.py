"""Computes vectors of texts with NumPy, without TensorFlow.

`keras_lstm_dssm.encoders` has the same equations, arguments and weight names.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lstm_dssm_client.portable_file import Table, Weights
from lstm_dssm_client.words import (
    EMPTY_TEXT,
    PRIME,
    SKETCH_BUCKETS,
    SKETCH_FACTORS,
    SKETCH_ROWS,
    SKETCH_START,
    SKETCH_START_OFFSET,
    sketch_mix,
    split_words,
    trigram_ids,
)


class Words(NamedTuple):
    """The distinct words and the trigrams of texts, the longest text first."""

    ids: np.ndarray  # trigram ids of all distinct words, word after word
    bounds: np.ndarray  # index of each word's first id; at the end, len(ids)
    # index of each word among the distinct words, text after text
    flat: np.ndarray
    lengths: np.ndarray  # number of words of each text, descending

    def table_sums(self, table: Table) -> np.ndarray:
        """Sums the table rows of each word's trigrams, `[words, width]`."""
        rows = table.rows(self.ids)
        return np.add.reduceat(rows, self.bounds[:-1], axis=0)

    def text_sums(self, rows: np.ndarray) -> np.ndarray:
        """Sums the rows of each text's words, `[texts, width]`."""
        return np.add.reduceat(rows[self.flat], self.text_starts, axis=0)

    @property
    def text_starts(self) -> np.ndarray:
        """Index in `flat` of each text's first word, `[texts]`."""
        return np.cumsum(self.lengths) - self.lengths


Compose = Callable[[Words], np.ndarray]
"""Function that computes unscaled vectors of texts, `[texts, dimension]`."""


class LocalEncoder:
    """Computes with NumPy the vectors that a Keras encoder computes."""

    def __init__(
        self, kind: str, config: Mapping[str, Any], weights: Weights
    ) -> None:
        self._split = config["split"], config["max_words"]
        self._oov_buckets = config["oov_buckets"]
        self._compose = {**ENCODERS, **PARTS}[kind](config, weights)
        # If the weights do not fit together, the constructor fails here.
        self.dimension = self.encode([b"one text"]).shape[1]

    def encode(self, texts: Sequence[bytes]) -> np.ndarray:
        """Returns unit vectors, float32 `[texts, dimension]`."""
        return unit(self.compose(texts))

    def split(self, text: str | bytes) -> list[str]:
        """Splits a text into words; a text without words becomes one word."""
        return split_words(text, *self._split) or [EMPTY_TEXT]

    def compose(self, texts: Sequence[str | bytes]) -> np.ndarray:
        """Returns vectors, not scaled yet, float32 `[texts, dimension]`."""
        split_texts = [*map(self.split, texts)]
        lengths = np.array([len(words) for words in split_texts])
        order = np.argsort(-lengths, kind="stable")
        numbers: dict[str, int] = {}
        flat = [
            numbers.setdefault(word, len(numbers))
            for row in order.tolist()
            for word in split_texts[row]
        ]
        ids, bounds = trigram_ids([*numbers], self._oov_buckets)
        words = Words(ids, bounds, np.array(flat), lengths[order])
        return self._compose(words)[np.argsort(order)]


_ONE = np.float32(1)


def unit(y: np.ndarray, length: Any = _ONE) -> np.ndarray:
    """Scales rows to `length`; zero rows get the direction [1, 0, 0, ...]."""
    square = np.einsum("ij,ij->i", y, y)[:, np.newaxis]
    if square.min() <= 1e-30:
        zero = square <= 1e-30
        y = np.where(zero, np.eye(1, y.shape[1], dtype=y.dtype), y)
        square = np.where(zero, 1, square)
    return y * (length / np.sqrt(square))


def _dssm(config: Mapping[str, Any], weights: Weights) -> Compose:
    units = config["units"]
    table = weights.table("embedding", units[0])
    dense = [
        (
            weights.array(f"dense_{number}/kernel", *units[number - 1 :][:2]),
            weights.array(f"dense_{number}/bias", units[number]),
        )
        for number in range(1, len(units))
    ]

    def compose(words: Words) -> np.ndarray:
        y = words.text_sums(words.table_sums(table))
        for kernel, bias in dense:
            y = np.tanh(y @ kernel + bias)
        return y

    return compose


def _clsm(config: Mapping[str, Any], weights: Weights) -> Compose:
    window, filters, units = (
        config[name] for name in ("window", "filters", "units")
    )
    table = weights.table("embedding", window * filters)
    bias = weights.array("convolution_bias", filters)
    kernel = weights.array("dense/kernel", filters, units)
    dense_bias = weights.array("dense/bias", units)

    def compose(words: Words) -> np.ndarray:
        rows = words.table_sums(table).reshape(-1, window, filters)
        text = np.repeat(np.arange(len(words.lengths)), words.lengths)
        position = np.arange(len(text))
        total = np.zeros((len(text), filters), np.float32)
        for column in range(window):
            neighbour = position + column - window // 2
            inside = (neighbour >= 0) & (neighbour < len(text))
            inside[inside] = text[neighbour[inside]] == text[inside]
            total[inside] += rows[words.flat[neighbour[inside]], column]
        h = np.tanh(total + bias)
        v = np.maximum.reduceat(h, words.text_starts, axis=0)
        return np.tanh(v @ kernel + dense_bias)

    return compose


def by_time(
    values: np.ndarray,  # values of the first sequence, then of the second, ...
    lengths: np.ndarray,  # length of each sequence, descending
    reverse: bool,  # whether sequences are read from the end
) -> tuple[np.ndarray, list[int]]:
    """Sorts the values of sequences by time step.

    Returns the first values of all sequences, then the second values, and so
    on; and how many values each time step has.
    """
    if len(lengths) == 1:
        return values[:: -1 if reverse else 1], [1] * len(values)
    mask = np.arange(lengths[0]) < lengths[:, np.newaxis]
    padded = np.zeros(mask.shape, np.int64)
    if reverse:  # `values[::-1]` begins with the last sequence, reversed
        padded[::-1][mask[::-1]] = values[::-1]
    else:
        padded[mask] = values
    return padded.T[mask.T], mask.sum(axis=0).tolist()


Step = Callable[[np.ndarray, np.ndarray, np.ndarray], None]
"""Function of z, c and y that computes a time step of a recurrent layer. z is
the input of the gates, and may be overwritten. c and y are the layer's states,
and are updated in place."""


def run_steps(
    inputs: np.ndarray,  # sorted by time step, see `by_time`; overwritten
    counts: Sequence[int],  # number of inputs of each time step
    kernel: np.ndarray,  # W_rec, [units, width]
    step: Step,
    outputs: np.ndarray | None = None,  # [n, units], to be filled with every y
) -> np.ndarray:
    """Runs a recurrent layer; returns the last y of each sequence."""
    y = np.zeros((counts[0], len(kernel)), inputs.dtype)
    c, start = np.zeros_like(y), 0
    for count in counts:
        z = inputs[start : start + count]
        if start:
            z += y[:count] @ kernel
        step(z, c[:count], y[:count])
        if outputs is not None:
            outputs[start : start + count] = y[:count]
        start += count
    return y


def _recurrent(
    weights: Weights,
    name: str,
    step: Step,
    columns: np.ndarray,
    signs: np.ndarray | np.float32,
) -> Compose:
    """Returns a function that computes a recurrent layer's last outputs."""
    backward = "_backward" if name.endswith("_backward") else ""
    width = len(columns)
    table = weights.table(f"embedding{backward}", width)
    kernel = weights.array(f"{name}/cell/recurrent_kernel", None, width)
    kernel = kernel[:, columns] * signs
    bias = weights.array(f"{name}/cell/bias", width)

    def last_output(words: Words) -> np.ndarray:
        inputs = (words.table_sums(table) + bias)[:, columns] * signs
        flat, counts = by_time(words.flat, words.lengths, bool(backward))
        return run_steps(inputs[flat], counts, kernel, step)

    return last_output


def _rnn(config: Mapping[str, Any], weights: Weights) -> Compose:
    def step(z: np.ndarray, _: np.ndarray, y: np.ndarray) -> None:
        np.tanh(z, out=y)

    return _recurrent(weights, "rnn", step, np.arange(config["units"]), _ONE)


def _lstm(
    config: Mapping[str, Any], weights: Weights, name: str = "lstm"
) -> Compose:
    cells, peephole = config["cells"], config["peephole"]
    shape = (cells,) * (2 if peephole == "full" else 1)
    peepholes = {
        gate: weights.array(f"{name}/cell/peephole_{gate}", *shape)
        for gate in ("ifo" if config["forget_gate"] else "io")
        if peephole
    }
    gates = "ifgo" if config["forget_gate"] else "igo"
    return _recurrent(weights, name, *lstm_step(cells, gates, peepholes))


def lstm_step(
    cells: int,
    gates: str,  # names in the order of the weights' columns, such as "ifgo"
    peepholes: Mapping[str, np.ndarray],  # matrix or diagonal of each gate
) -> tuple[Step, np.ndarray, np.ndarray]:
    """Returns an LSTM's step, and the order and the signs of z's columns."""
    # The gates with a sigmoid become adjacent, so that one call of `_sigmoid`
    # can compute several gates. As `_sigmoid` takes -z, their signs are -1.
    order = gates.replace("g", "") + "g"
    columns = np.concatenate(
        [gates.index(gate) * cells + np.arange(cells) for gate in order]
    )
    signs = np.repeat(np.where([g == "g" for g in order], 1, -1), cells)

    def add_peephole(gate: str, z: np.ndarray, c: np.ndarray) -> None:
        """Subtracts W_p c from z, which has the negative input of the gate."""
        start, p = order.index(gate) * cells, peepholes[gate]
        z[:, start : start + cells] -= c @ p.T if p.ndim == 2 else c * p

    def step(z: np.ndarray, c: np.ndarray, y: np.ndarray) -> None:
        """Computes the LSTM's new states, eq. (2) of Palangi et al. 2016."""
        o = z[:, -2 * cells : -cells]
        for gate in peepholes.keys() - "o":
            add_peephole(gate, z, c)
        _sigmoid(z[:, : -2 * cells] if peepholes else z[:, :-cells])
        g = np.tanh(z[:, -cells:])
        g *= z[:, :cells]  # i
        if "f" in gates:
            c *= z[:, cells : 2 * cells]
        c += g
        if peepholes:
            add_peephole("o", z, c)
            _sigmoid(o)
        np.multiply(o, np.tanh(c), out=y)

    return step, columns, signs.astype(np.float32)


def _sigmoid(minus_z: np.ndarray) -> None:
    """Replaces -z by the sigmoid of z, in place."""
    # (1 + tanh(z / 2)) / 2 would be faster, but rounds small results to 0.
    with np.errstate(over="ignore"):  # exp may be infinite
        np.exp(minus_z, out=minus_z)
    minus_z += 1
    np.reciprocal(minus_z, out=minus_z)


def _bidirectional(config: Mapping[str, Any], weights: Weights) -> Compose:
    backward = _lstm(config, weights, "lstm_backward")
    return _joined(_lstm(config, weights), backward)


def _lengths(config: Mapping[str, Any]) -> np.ndarray:
    """Returns the norm of each part of `CombinedEncoder`'s vectors, float32."""
    shares = np.array(config["shares"])
    return np.sqrt(shares / shares.sum()).astype(np.float32)


def _joined(*parts: Compose) -> Compose:
    return lambda words: np.concatenate([part(words) for part in parts], axis=1)


def _scaled(part: Compose, length: np.float32) -> Compose:
    return lambda words: unit(part(words), length)


def _trained_columns(config: Mapping[str, Any], weights: Weights) -> Compose:
    a, b, *_ = _lengths(config)
    table = weights.table("bag_embedding", config["bag"])
    return _joined(
        _scaled(_lstm(config, weights), a),
        _scaled(lambda words: words.text_sums(words.table_sums(table)), b),
    )


def _combined(config: Mapping[str, Any], weights: Weights) -> Compose:
    trained = _trained_columns(config, weights)
    sketch_of_words = _sketch(config, weights)
    long = weights.array("long")
    power = np.float32(1 - config["length_norm"])
    _, _, c, *d = _lengths(config)

    def sketch_columns(words: Words) -> np.ndarray:
        sketch = words.text_sums(sketch_of_words(words))
        m = np.ones((len(sketch), 1), np.float32)  # see `CombinedEncoder`
        if power:  # the power is 0 in query encoders
            length = np.linalg.norm(sketch, axis=1, keepdims=True)
            zeros = np.zeros_like(length)
            m = np.divide(length, long, out=zeros, where=long != 0)
            m = np.minimum(m, 1) ** power
        return np.hstack([unit(sketch, c * m), c * np.sqrt(1 - m**2)])

    word_columns = [_scaled(_word_sum(config, weights), d[0])] if d else []
    return _joined(trained, sketch_columns, *word_columns)


_KEY_FACTORS = np.reshape(SKETCH_FACTORS[2:], (3, 1, 1))


def _sketch(config: Mapping[str, Any], weights: Weights) -> Compose:
    """Returns a function that computes `WordSketch` for each distinct word."""
    width = config["sketch"]
    shape = SKETCH_ROWS, -(-width // 8)  # a bit for each sign
    signs = [
        weights.array(f"word_sketch/signs_{table}", *shape, dtype=np.uint8)
        for table in range(2)
    ]
    word_weight = weights.array("word_sketch/word_weight", SKETCH_BUCKETS)

    def sketches(words: Words) -> np.ndarray:
        sums = np.zeros(len(words.ids) + 1, np.int64)
        np.cumsum(sketch_mix(words.ids, np.right_shift), out=sums[1:])
        starts, ends = words.bounds[:-1], words.bounds[1:]
        start_sums = sums[np.minimum(starts + SKETCH_START, ends)]
        # A word has two keys: a key of the whole word, and a key of its start.
        keys = np.array([sums[ends], start_sums + SKETCH_START_OFFSET])
        keys = (keys - sums[starts]) % PRIME
        hashed = sketch_mix(keys * _KEY_FACTORS % PRIME, np.right_shift)
        weight = word_weight[hashed[0] % SKETCH_BUCKETS, np.newaxis]
        first, second = hashed[1:] % SKETCH_ROWS
        differ = np.unpackbits(
            signs[0][first] ^ signs[1][second], axis=2, count=width
        )
        rows = weight - (2 * weight) * differ
        return rows[0] + rows[1]

    return sketches


def _word_sum(config: Mapping[str, Any], weights: Weights) -> Compose:
    width = config["units"]
    word_rows = _keyed_rows(weights, "of_words", config["known_words"], width)
    trigram_rows = _keyed_rows(
        weights, "of_trigrams", config["known_trigrams"], width
    )

    def compose(words: Words) -> np.ndarray:
        mixed = sketch_mix(words.ids, np.right_shift)
        rows, known = word_rows(np.add.reduceat(mixed, words.bounds[:-1]))
        if not known.all():
            by_trigram, _ = trigram_rows(words.ids)
            sums = np.add.reduceat(by_trigram, words.bounds[:-1], axis=0)
            rows[~known] = sums[~known]
        return words.text_sums(rows)

    return compose


def _keyed_rows(
    weights: Weights, name: str, count: int, width: int
) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Returns a function: keys -> rows, and whether each key is known.

    The row of an unknown key is 0.
    """
    sorted_keys = weights.array(f"{name}/keys", count, dtype=np.int64)
    codes = weights.array(f"{name}/codes", count, width, dtype=np.int8)
    scales = weights.array(f"{name}/scales", count)

    def look_up(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        indices = np.minimum(np.searchsorted(sorted_keys, keys), count - 1)
        known = sorted_keys[indices] == keys
        scale = np.where(known, scales[indices], np.float32(0))
        return codes[indices] * scale[:, np.newaxis], known

    return look_up


ENCODERS: dict[str, Callable[[Mapping[str, Any], Weights], Compose]] = {
    "BidirectionalLSTMEncoder": _bidirectional,
    "CLSMEncoder": _clsm,
    "CombinedEncoder": _combined,
    "DSSMEncoder": _dssm,
    "LSTMEncoder": _lstm,
    "RNNEncoder": _rnn,
    "WordSumEncoder": _word_sum,
}

PARTS: dict[str, Callable[[Mapping[str, Any], Weights], Compose]] = {
    "CombinedEncoder/towers": _trained_columns,
    "CombinedEncoder/words": _word_sum,
}
