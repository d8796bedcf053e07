"""Computes the activations of a recurrent encoder at each word of a text."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Optional

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.encoders.text_encoder import TextEncoder
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.layers.letter_trigrams import TrigramEmbedding
from keras_lstm_dssm.layers.recurrent import Recurrent

ACTIVATION_NAMES = ("i", "f", "c", "o", "y")
"""The input gate, forget gate, cell state, output gate and output in eq. (2) of
Palangi et al. 2016."""


class Activations(NamedTuple):
    """Holds the activations of a recurrent network that reads a text.

    Each array is `[words, cells]` with the encoder's dtype. Row t belongs to
    word t of the text, in either reading direction. If the network lacks a
    gate, the array of the gate is `None`. An RNN has only y.

    Attributes:
        words: The words of the text.
        i: The input gate.
        f: The forget gate.
        c: The cell state.
        o: The output gate.
        y: The output.
        backward: For a bidirectional encoder, the activations of the network
            that reads from right to left; for all other encoders `None`.
        reverse: Whether this network reads from right to left.

    Example:
    >>> lstm = activations(dssm.LSTMEncoder(cells=4), "hotels in shanghai")
    >>> lstm.words, lstm.y.shape, sorted(lstm.arrays)
    (('hotels', 'in', 'shanghai'), (3, 4), ['c', 'i', 'o', 'y'])
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
        """These activations, and the backward network's activations, if any."""
        return (self, self.backward) if self.backward else (self,)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """Name -> array, without the arrays that are `None`."""
        fields = self._asdict()
        return {
            name: fields[name]
            for name in ACTIVATION_NAMES
            if fields[name] is not None
        }

    @property
    def first_read(self) -> int:
        """Position in the text of the word that the network reads first."""
        return len(self.words) - 1 if self.reverse else 0

    @property
    def offset(self) -> int:
        """Position of the network's first cell in the text's vector."""
        return self.y.shape[1] * self.reverse

    @property
    def final_y(self) -> np.ndarray:
        """The output y after the last word that is read, `[cells]`."""
        return self.y[0 if self.reverse else -1]

    @property
    def change(self) -> np.ndarray:
        """By how much y changes when a word is read, `[words, cells]`."""
        y = self.y[::-1] if self.reverse else self.y
        change = np.diff(y, axis=0, prepend=0)
        return change[::-1] if self.reverse else change

    @property
    def recurrent_vector(self) -> np.ndarray:
        """The concatenated final outputs of all directions.

        For a `CombinedEncoder`, the result is only the output of the LSTM.
        For all other encoders, the result is the text's vector. The result is
        not scaled to unit length.
        """
        return np.concatenate([network.final_y for network in self.directions])

    def columns(self) -> dict[str, np.ndarray]:
        """Returns a data frame's columns, with a row for each word and cell.

        Rows of the forward network come before rows of the backward network.
        """
        length, cells = self.y.shape
        columns = {
            "reverse": np.full(self.y.size, self.reverse),
            "position": np.repeat(np.arange(length), cells),
            "word": np.repeat(np.array(self.words, object), cells),
            "cell": np.tile(np.arange(cells), length),
            **{name: array.ravel() for name, array in self.arrays.items()},
        }
        if not self.backward:
            return columns
        backward = self.backward.columns()
        return {
            name: np.concatenate([values, backward[name]])
            for name, values in columns.items()
        }


def activations(encoder: TextEncoder, text: str) -> Activations:
    """Returns all activations of a recurrent encoder while it reads a text.

    Palangi et al. 2016, section V-A, Figs. 4 and 5.

    Args:
        encoder: An LSTM, bidirectional LSTM, RNN or combined encoder.
        text: The text to read.

    Raises:
        InputError: The encoder is not recurrent, such as a `DSSMEncoder`.

    Example:
    >>> lstm = activations(dssm.LSTMEncoder(cells=32), "hotels in shanghai")
    >>> lstm.words, lstm.y.shape, lstm.f is None
    (('hotels', 'in', 'shanghai'), (3, 32), True)
    """
    return next(each_activations(encoder, [text]))


def each_activations(
    encoder: TextEncoder, texts: Sequence[str], batch_size: int = 256
) -> Iterator[Activations]:
    """Yields the `activations` of a recurrent encoder for each text.

    `batch_size` texts are encoded at once. Raises `InputError` if the encoder
    is not recurrent.

    Example:
    >>> encoder = dssm.RNNEncoder(units=4)
    >>> texts = ["bolt", "hex nut"]
    >>> [len(rnn.words) for rnn in each_activations(encoder, texts)]
    [1, 2]
    """
    networks = encoder.networks
    if not networks:
        raise InputError(
            f"{type(encoder).__name__} reads all words at once and has no "
            "activations by word: use an LSTM, bidirectional LSTM, RNN or "
            "combined encoder"
        )
    encoder.sync_weights()
    for start in range(0, len(texts), batch_size):
        batch = texts[start : start + batch_size]
        arrays_by_network = [
            _compute(encoder, batch, *network, reverse=bool(index))
            for index, network in enumerate(networks)
        ]
        for text_index, words in enumerate(words_of(encoder, batch)):
            result = None
            for index in reversed(range(len(networks))):
                arrays: dict[str, Any] = dict.fromkeys(ACTIVATION_NAMES)
                for name, array in arrays_by_network[index].items():
                    arrays[name] = array[text_index, : len(words)]
                result = Activations(
                    words, **arrays, backward=result, reverse=index == 1
                )
            assert result
            yield result


def words_of(
    encoder: TextEncoder, texts: Sequence[str]
) -> list[tuple[str, ...]]:
    """Returns each text's words, as the encoder reads them."""
    rows = encoder.trigrams.words(texts).to_list()
    return [tuple(word.decode() for word in row) for row in rows]


def _compute(
    encoder: TextEncoder,
    texts: Sequence[str],
    embedding: TrigramEmbedding,
    network: Recurrent,
    reverse: bool,
) -> dict[str, Any]:
    """Returns name -> array `[texts, words, cells]`."""
    batch = encoder.trigrams.distinct(texts)
    inputs = tf.gather(embedding(batch), batch.words)

    def in_reading_order(values: tf.Tensor) -> tf.Tensor:
        if not reverse:
            return values
        return tf.reverse_sequence(values, batch.lengths, seq_axis=1)

    arrays = network.activations(in_reading_order(inputs), batch.lengths)
    # Reversing twice restores the order of the text.
    return {
        name: tf.gather(in_reading_order(array), batch.text_index).numpy()
        for name, array in arrays.items()
        if name in ACTIVATION_NAMES
    }
