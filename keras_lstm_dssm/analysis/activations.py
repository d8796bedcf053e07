"""Activations: what every cell does at every word of a text."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Optional

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.encoders import (
    BidirectionalLSTMEncoder,
    LSTMEncoder,
    RNNEncoder,
    TextEncoder,
)
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.layers import Recurrent, TrigramEmbedding
from keras_lstm_dssm.text import as_strings, split_words

NAMES = ("i", "f", "c", "o", "y")
"""Input gate, forget gate, cell state, output gate, output; see (2)."""


class Activations(NamedTuple):
    """One network's activations while it reads one text.

    Each array is `[words, cells]` of the encoder's dtype, its rows in the
    order of the words whichever way the network reads; None where the
    network has no such gate (an RNN has y alone).

    Attributes:
        words: The words as the encoder reads them.
        i: Input gate.
        f: Forget gate.
        c: Cell state.
        o: Output gate.
        y: Output.
        backward: The second network's, of a bidirectional encoder.
        reverse: Whether this network reads from right to left.
    """

    words: tuple[str, ...]
    i: np.ndarray | None
    f: np.ndarray | None
    c: np.ndarray | None
    o: np.ndarray | None
    y: np.ndarray
    backward: Optional["Activations"] = None
    reverse: bool = False

    @property
    def directions(self) -> tuple["Activations", ...]:
        """This network, and the one that reads from the right if any."""
        return (self, self.backward) if self.backward else (self,)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """Name -> array, of those that the network has."""
        given = self._asdict()
        return {name: given[name] for name in NAMES if given[name] is not None}

    @property
    def first(self) -> int:
        """Place of the word that is read first."""
        return len(self.words) - 1 if self.reverse else 0

    @property
    def offset(self) -> int:
        """Place of this network's first cell in the sentence vector."""
        return self.y.shape[1] * self.reverse

    @property
    def final(self) -> np.ndarray:
        """The output y after the last word read, `[cells]`."""
        return self.y[0 if self.reverse else -1]

    @property
    def change(self) -> np.ndarray:
        """`y(t) - y(t-1)` at each word, `[words, cells]`; y(0) is zero."""
        y = self.y[::-1] if self.reverse else self.y
        change = np.diff(y, axis=0, prepend=0)
        return change[::-1] if self.reverse else change

    @property
    def vector(self) -> np.ndarray:
        """The sentence vector, `[dimension]`, not scaled to unit length."""
        return np.concatenate([one.final for one in self.directions])


def activations(encoder: TextEncoder, text: str) -> Activations:
    """Reads one text with a recurrent encoder and keeps everything.

    Palangi et al. 2016, section V-A and Figs. 4 and 5.

    Raises:
        InputError: The encoder has no recurrence (DSSM, CLSM).

    Example:
    >>> found = activations(dssm.LSTMEncoder(cells=32), "hotels in shanghai")
    >>> found.words, found.y.shape, found.f is None
    (('hotels', 'in', 'shanghai'), (3, 32), True)
    """
    return next(each_activations(encoder, [text]))


def each_activations(
    encoder: TextEncoder, texts: Sequence[str], batch_size: int = 256
) -> Iterator[Activations]:
    """Yields the activations of each text; see `activations`."""
    networks = networks_of(encoder)
    for start in range(0, len(texts), batch_size):
        batch = texts[start : start + batch_size]
        read = [
            _read(encoder, batch, *network, reverse=place == 1)
            for place, network in enumerate(networks)
        ]
        for row, words in enumerate(words_of(encoder, batch)):
            one, *rest = [
                Activations(
                    words,
                    **{name: None for name in NAMES}
                    | {n: v[row, : len(words)] for n, v in arrays.items()},
                    reverse=place == 1,
                )
                for place, arrays in enumerate(read)
            ]
            yield one._replace(backward=rest[0] if rest else None)


def words_of(
    encoder: TextEncoder, texts: Sequence[str]
) -> list[tuple[str, ...]]:
    """Splits texts into the words that an encoder reads.

    Example:
    >>> words_of(dssm.LSTMEncoder(cells=32), ["Hotels in  Shanghai"])
    [('hotels', 'in', 'shanghai')]
    """
    hashing = encoder.trigrams
    split = split_words(as_strings(texts), hashing.max_words, hashing.split)
    return [tuple(w.decode() for w in row) for row in split.to_list()]


def is_recurrent(*encoders: TextEncoder) -> bool:
    """Whether encoders read word by word, every one of them."""
    return all(isinstance(one, LSTMEncoder | RNNEncoder) for one in encoders)


def networks_of(
    encoder: TextEncoder,
) -> list[tuple[TrigramEmbedding, Recurrent]]:
    """Returns an encoder's embedding and network, of each direction.

    Raises:
        InputError: The encoder has no recurrence (DSSM, CLSM).
    """
    if isinstance(encoder, RNNEncoder):
        return [(encoder.embedding, encoder.rnn)]
    if not isinstance(encoder, LSTMEncoder):
        raise InputError(
            f"{type(encoder).__name__} takes all words at once and has no "
            "activations by word; use an LSTM, bidirectional LSTM or RNN"
        )
    networks = [(encoder.embedding, encoder.lstm)]
    if isinstance(encoder, BidirectionalLSTMEncoder):
        networks.append((encoder.backward_embedding, encoder.backward_lstm))
    return networks


def _read(
    encoder: TextEncoder,
    texts: Sequence[str],
    embedding: TrigramEmbedding,
    network: Recurrent,
    reverse: bool,
) -> dict[str, Any]:
    """Name -> `[texts, longest, cells]`, rows in the order of the words."""
    batch = encoder.trigrams.distinct(texts)
    inputs = tf.gather(embedding(batch), batch.words)

    def turn(values: tf.Tensor) -> tf.Tensor:
        if not reverse:
            return values
        return tf.reverse_sequence(values, batch.lengths, seq_axis=1)

    found = network.activations(turn(inputs), batch.lengths)
    return {
        name: tf.gather(turn(values), batch.text_index).numpy()
        for name, values in found.items()
        if name in NAMES
    }
