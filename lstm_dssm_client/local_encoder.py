"""Encoders of two towers in NumPy: texts to unit vectors.

The equations are those of `keras_lstm_dssm.encoders`, whose classes, arguments
and weights' names they have. They compute in float32.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from lstm_dssm_client.words import PRIME, TRIGRAMS, split_words, trigram_ids


class Table(NamedTuple):
    """A table of trigrams: float32, or int8 with a scale for each row."""

    values: np.ndarray  # [rows, width]
    scales: np.ndarray | None  # float32 [rows]

    def sums(self, ids: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """Sums the rows of each word, float32 `[words, width]`."""
        rows = self.values[ids]
        if self.scales is not None:
            rows = rows * self.scales[ids, np.newaxis]
        return np.add.reduceat(rows, starts, axis=0)


class Weights(Protocol):
    """Finds the weights of an encoder by name; raises where one is missing."""

    def array(self, name: str, *shape: int, dtype: Any = np.float32) -> Any:
        """Returns an array of this shape."""

    def table(self, name: str, rows: int, width: int) -> Table:
        """Returns the table of an embedding."""


class Words(NamedTuple):
    """The words of texts: each distinct word once.

    The texts are in descending order of their lengths.
    """

    ids: np.ndarray  # of the trigrams of all distinct words
    starts: np.ndarray  # where those of each distinct word begin
    flat: np.ndarray  # number of each word of each text
    lengths: np.ndarray  # words of each text

    @property
    def text_starts(self) -> np.ndarray:
        """Where each text begins in `flat`."""
        return np.cumsum(self.lengths) - self.lengths

    def sums(self, rows: np.ndarray) -> np.ndarray:
        """Sums what each distinct word has over the words of each text."""
        return np.add.reduceat(rows[self.flat], self.text_starts, axis=0)


def read_words(
    texts: Sequence[bytes], split: str, max_words: int | None, oov_buckets: int
) -> tuple[Words, np.ndarray]:
    """Hashes texts; also returns the order in which they stand in `Words`."""
    split_texts = [split_words(text, split, max_words) for text in texts]
    lengths = np.array([len(words) for words in split_texts])
    order = np.argsort(-lengths, kind="stable")
    numbers: dict[bytes, int] = {}
    flat = [
        numbers.setdefault(word, len(numbers))
        for row in order.tolist()
        for word in split_texts[row]
    ]
    ids, starts = trigram_ids([*numbers], oov_buckets)
    return Words(ids, starts, np.array(flat), lengths[order]), order


def unit(y: np.ndarray, length: Any = np.float32(1)) -> np.ndarray:
    """Scales rows to a length; a zero row becomes the first basis vector."""
    square = np.einsum("ij,ij->i", y, y)[:, np.newaxis]
    if square.min() <= 1e-30:
        zero = square <= 1e-30
        y = np.where(zero, np.eye(1, y.shape[1], dtype=y.dtype), y)
        square = np.where(zero, 1, square)
    return y * (length / np.sqrt(square))


class LocalEncoder:
    """Base of the encoders: hashes texts; a subclass has `compose`.

    Args:
        config: Arguments of the encoder's class.
        weights: Its weights.
    """

    dimension: int

    def __init__(self, config: Mapping[str, Any], weights: Weights) -> None:
        self._hashing = (
            config["split"],
            config["max_words"],
            config["oov_buckets"],
        )
        self.rows = TRIGRAMS + config["oov_buckets"]

    def encode(self, texts: Sequence[bytes]) -> np.ndarray:
        """Returns unit vectors, float32 `[texts, dimension]`."""
        words, order = read_words(texts, *self._hashing)
        vectors = unit(self.compose(words))
        if len(texts) == 1:
            return vectors
        result = np.empty_like(vectors)
        result[order] = vectors
        return result

    def compose(self, words: Words) -> np.ndarray:
        """Computes the vectors of texts, float32 `[texts, dimension]`."""
        raise NotImplementedError


class DSSM(LocalEncoder):
    """See `keras_lstm_dssm.DSSMEncoder`."""

    def __init__(self, config: Mapping[str, Any], weights: Weights) -> None:
        super().__init__(config, weights)
        units = config["units"]
        self.dimension = units[-1]
        self._table = weights.table("embedding", self.rows, units[0])
        self._dense = [
            (
                weights.array(
                    f"dense_{number}/kernel", *units[number - 1 :][:2]
                ),
                weights.array(f"dense_{number}/bias", units[number]),
            )
            for number in range(1, len(units))
        ]

    def compose(self, words: Words) -> np.ndarray:
        """Computes tanh layers of the sum of all words' rows."""
        y = words.sums(self._table.sums(words.ids, words.starts))
        for kernel, bias in self._dense:
            y = np.tanh(y @ kernel + bias)
        return y


class CLSM(LocalEncoder):
    """See `keras_lstm_dssm.CLSMEncoder`."""

    def __init__(self, config: Mapping[str, Any], weights: Weights) -> None:
        super().__init__(config, weights)
        self._window, filters = config["window"], config["filters"]
        self.dimension = config["units"]
        self._table = weights.table(
            "embedding", self.rows, self._window * filters
        )
        self._bias = weights.array("convolution_bias", filters)
        self._kernel = weights.array("dense/kernel", filters, self.dimension)
        self._dense_bias = weights.array("dense/bias", self.dimension)

    def compose(self, words: Words) -> np.ndarray:
        """Computes a convolution over words, its maximum and a tanh layer."""
        rows = self._table.sums(words.ids, words.starts)
        rows = rows.reshape(-1, self._window, len(self._bias))
        text = np.repeat(np.arange(len(words.lengths)), words.lengths)
        place = np.arange(len(text))
        total = np.zeros((len(text), len(self._bias)), np.float32)
        for column in range(self._window):
            other = place + column - self._window // 2
            inside = (other >= 0) & (other < len(text))
            inside[inside] = text[other[inside]] == text[inside]
            total[inside] += rows[words.flat[other[inside]], column]
        h = np.tanh(total + self._bias)
        v = np.maximum.reduceat(h, words.text_starts, axis=0)
        return np.tanh(v @ self._kernel + self._dense_bias)


class _Steps(NamedTuple):
    """The words of texts by time: first those at time 0, the longest first."""

    flat: np.ndarray
    counts: list[int]

    @classmethod
    def of(cls, words: Words, reverse: bool) -> "_Steps":
        """Takes the words, from right to left with `reverse`."""
        mask = np.arange(words.lengths[0]) < words.lengths[:, np.newaxis]
        padded = np.zeros(mask.shape, np.int64)
        if reverse:
            # The last text comes first, and its last word.
            padded[::-1][mask[::-1]] = words.flat[::-1]
        else:
            padded[mask] = words.flat
        return cls(padded.T[mask.T], mask.sum(axis=0).tolist())

    def each(self, inputs: np.ndarray) -> Iterator[np.ndarray]:
        """Yields the inputs at each time, a row for each text that is there."""
        values, start = inputs[self.flat], 0
        for count in self.counts:
            yield values[start : start + count]
            start += count


class _Network:
    """An embedding and a recurrent layer.

    `halved` is 0.5 in the columns of sigmoid gates: sigma(x) is
    (1 + tanh(x / 2)) / 2, and one call computes the tanh of several gates.
    """

    state_scale = 1.0
    """What the outputs are divided by, since `step` leaves factors out."""

    def __init__(
        self,
        weights: Weights,
        embedding: str,
        cell: str,
        rows: int,
        units: int,
        halved: np.ndarray,
    ) -> None:
        self.units = units
        self._halved = halved
        self._table = weights.table(embedding, rows, len(halved))
        kernel = weights.array(f"{cell}/recurrent_kernel", units, len(halved))
        self._recurrent = halved * kernel / np.float32(self.state_scale)
        self._bias = weights.array(f"{cell}/bias", len(halved))

    def last_output(self, words: Words, reverse: bool = False) -> np.ndarray:
        """Returns y after the last word of each text, `[texts, units]`."""
        inputs = self._table.sums(words.ids, words.starts)
        inputs += self._bias
        inputs *= self._halved
        y = np.zeros((len(words.lengths), self.units), np.float32)
        c = np.zeros_like(y)
        for time, x in enumerate(_Steps.of(words, reverse).each(inputs)):
            now = len(x)
            z = x + y[:now] @ self._recurrent if time else x
            self.step(z, c[:now], y[:now])
        return y

    def step(self, z: np.ndarray, c: np.ndarray, y: np.ndarray) -> None:
        """Computes the RNN of eq. (1), in place of y."""
        np.tanh(z, out=y)


_HALF = np.float32(0.5)


class _LSTM(_Network):
    """The cell of `keras_lstm_dssm.PeepholeLSTM`; its states are 2 c and 2 y."""

    state_scale = 2.0

    def __init__(
        self,
        weights: Weights,
        suffix: str,
        rows: int,
        cells: int,
        peephole: str | None,
        forget_gate: bool,
    ) -> None:
        gates = "ifgo" if forget_gate else "igo"
        halved = np.repeat(
            np.array([1 if gate == "g" else 0.5 for gate in gates], np.float32),
            cells,
        )
        cell = f"lstm{suffix}/cell"
        super().__init__(
            weights, f"embedding{suffix}", cell, rows, cells, halved
        )
        self._peephole = peephole
        shape = (cells,) * (2 if peephole == "full" else 1)
        self._peepholes = {
            gate: 0.25 * weights.array(f"{cell}/peephole_{gate}", *shape)
            for gate in gates
            if peephole and gate != "g"
        }

    def step(self, z: np.ndarray, c: np.ndarray, y: np.ndarray) -> None:
        """Computes eq. (2), in place of c and y."""
        cells = self.units
        output = z[:, -cells:]
        if not self._peephole:
            np.tanh(z, out=z)
        else:
            for number, gate in enumerate("if"[: z.shape[1] // cells - 2]):
                self._look(gate, z[:, number * cells :][:, :cells], c)
            np.tanh(z[:, :-cells], out=z[:, :-cells])
        new = z[:, -2 * cells : -cells]  # g
        if z.shape[1] > 3 * cells:  # there is a forget gate
            forget = z[:, cells : 2 * cells]
            forget += 1
            forget *= 0.5
            c *= forget
        new *= z[:, :cells] + 1
        c += new
        if self._peephole:
            self._look("o", output, c)
            np.tanh(output, out=output)
        output += 1
        np.multiply(output, np.tanh(c * _HALF), out=y)

    def _look(self, gate: str, z: np.ndarray, c: np.ndarray) -> None:
        """Adds W_p c to a gate's part of z."""
        if self._peephole == "diagonal":
            z += c * self._peepholes[gate]
        elif self._peephole == "full":
            z += c @ self._peepholes[gate].T


class RNN(LocalEncoder):
    """See `keras_lstm_dssm.RNNEncoder`."""

    def __init__(self, config: Mapping[str, Any], weights: Weights) -> None:
        super().__init__(config, weights)
        self.dimension = units = config["units"]
        ones = np.ones(units, np.float32)
        self._rnn = _Network(
            weights, "embedding", "rnn/cell", self.rows, units, ones
        )

    def compose(self, words: Words) -> np.ndarray:
        """Runs the RNN over the words."""
        return self._rnn.last_output(words)


class LSTM(LocalEncoder):
    """See `keras_lstm_dssm.LSTMEncoder`."""

    def __init__(self, config: Mapping[str, Any], weights: Weights) -> None:
        super().__init__(config, weights)
        self.dimension = config["cells"]
        self._lstm = self._layer(config, weights, "")

    def _layer(
        self, config: Mapping[str, Any], weights: Weights, suffix: str
    ) -> _LSTM:
        options = config["cells"], config["peephole"], config["forget_gate"]
        return _LSTM(weights, suffix, self.rows, *options)

    def compose(self, words: Words) -> np.ndarray:
        """Runs the LSTM over the words."""
        return self._lstm.last_output(words)


class BidirectionalLSTM(LSTM):
    """See `keras_lstm_dssm.BidirectionalLSTMEncoder`."""

    def __init__(self, config: Mapping[str, Any], weights: Weights) -> None:
        super().__init__(config, weights)
        self.dimension *= 2
        self._backward = self._layer(config, weights, "_backward")

    def compose(self, words: Words) -> np.ndarray:
        """Runs both LSTMs over the words."""
        backward = self._backward.last_output(words, reverse=True)
        return np.hstack([super().compose(words), backward])


SKETCH_ROWS = 2048
"""Rows of each of the two tables of signs of a sketch."""

SKETCH_BUCKETS = 2**17
"""Number of counters of document frequencies."""

SKETCH_START = 3
"""Number of trigrams in the start of a word."""

SKETCH_FACTORS = (
    1_557_985_959, 2_028_178_513, 48_271, 742_938_285, 950_706_376,
)  # fmt: skip

SKETCH_START_OFFSET = 1_343_714_438
"""Added to hashes of starts, so that the word `cat` and the start of `cats`
have different hashes."""


class Combined(LSTM):
    """See `keras_lstm_dssm.CombinedEncoder`."""

    def __init__(self, config: Mapping[str, Any], weights: Weights) -> None:
        super().__init__(config, weights)
        self._sketch = config["sketch"]
        self._power = np.float32(1 - config["length_norm"])
        shares = np.array(config["shares"])
        self._factors = np.sqrt(shares / shares.sum()).astype(np.float32)
        self.dimension = config["cells"] + config["bag"] + self._sketch + 1
        self._bag = weights.table("bag_embedding", self.rows, config["bag"])
        # A bit for each sign.
        self._signs = [
            weights.array(
                f"word_sketch/signs_{number}",
                *(SKETCH_ROWS, -(-self._sketch // 8)),
                dtype=np.uint8,
            )
            for number in range(2)
        ]
        self._word_weight = weights.array(
            "word_sketch/word_weight", SKETCH_BUCKETS
        )
        self._long = weights.array("long")

    def compose(self, words: Words) -> np.ndarray:
        """Computes and concatenates the three parts."""
        bag = words.sums(self._bag.sums(words.ids, words.starts))
        sketch = words.sums(self._word_sketches(words))
        m = self._length_factor(sketch)
        a, b, c = self._factors
        parts = (
            unit(super().compose(words), a),
            unit(bag, b),
            unit(sketch, c * m),
            c * np.sqrt(1 - m**2),
        )
        return np.concatenate(parts, axis=1)

    def _length_factor(self, sketch: np.ndarray) -> np.ndarray:
        """Computes m of each text, float32 `[texts, 1]`."""
        if not self._power:  # as in all query encoders
            return np.ones((len(sketch), 1), np.float32)
        length = np.linalg.norm(sketch, axis=1, keepdims=True)
        zeros = np.zeros_like(length)
        m = np.divide(length, self._long, out=zeros, where=self._long != 0)
        return np.minimum(m, 1) ** self._power

    def _word_sketches(self, words: Words) -> np.ndarray:
        """Adds the rows of each word and of its start; see `WordSketch`."""
        mixed = _mix(words.ids)
        ends = np.append(words.starts[1:], len(mixed))
        whole = np.add.reduceat(mixed, words.starts)
        sums = np.concatenate([[0], np.cumsum(mixed)])
        first = np.minimum(words.starts + SKETCH_START, ends)
        start = sums[first] - sums[words.starts]
        keys = np.concatenate([whole, start + SKETCH_START_OFFSET]) % PRIME
        hashed = _mix(keys * _KEY_FACTORS % PRIME)
        bucket = hashed[0] % SKETCH_BUCKETS
        first, second = hashed[1:] % SKETCH_ROWS
        differ = np.unpackbits(
            self._signs[0][first] ^ self._signs[1][second],
            axis=1,
            count=self._sketch,
        )
        weight = self._word_weight[bucket, np.newaxis]
        rows = weight - (2 * weight) * differ
        return rows[: len(whole)] + rows[len(whole) :]


_KEY_FACTORS = np.array(SKETCH_FACTORS[2:])[:, np.newaxis]


def _mix(numbers: np.ndarray) -> np.ndarray:
    """Hashes numbers to values below the prime whose sums rarely collide."""
    numbers = (numbers + 1) * SKETCH_FACTORS[0] % PRIME
    numbers ^= numbers >> 15
    return numbers * SKETCH_FACTORS[1] % PRIME


ENCODERS: dict[str, Callable[[Mapping[str, Any], Weights], LocalEncoder]] = {
    "BidirectionalLSTMEncoder": BidirectionalLSTM,
    "CLSMEncoder": CLSM,
    "CombinedEncoder": Combined,
    "DSSMEncoder": DSSM,
    "LSTMEncoder": LSTM,
    "RNNEncoder": RNN,
}
"""Name of a class of `keras_lstm_dssm` -> what encodes as it does."""
