"""Recurrent encoders: RNN, LSTM-RNN and bidirectional LSTM-RNN."""

from typing import Any

import tensorflow as tf

from keras_lstm_dssm.encoders.text_encoder import TextEncoder
from keras_lstm_dssm.errors import check_at_least
from keras_lstm_dssm.layers.letter_trigrams import TrigramEmbedding, gather_sum
from keras_lstm_dssm.layers.packed_sequence import pack
from keras_lstm_dssm.layers.peephole_lstm import PeepholeLSTM
from keras_lstm_dssm.layers.recurrent import Recurrent, run_single_sequence
from keras_lstm_dssm.layers.recurrent_cell import RNNCell
from keras_lstm_dssm.registration import register
from keras_lstm_dssm.text.word_batch import WordBatch


def run_network(
    embedding: TrigramEmbedding,
    layer: Recurrent,
    words: WordBatch,
    training: bool,
) -> tf.Tensor:
    """Encodes each distinct text as the last output of a recurrent layer.

    The layer reads the embedded words of a text, one at each time step.
    """
    if words.words.shape[0] == 1 and not training:
        # A batch of one text has no padding.
        projected = layer.project(embedding(words))
        values = tf.gather(projected, words.words[0])
        return run_single_sequence(layer.cell, values)
    steps = pack(words.words, words.lengths)
    projected = layer.project(embedding(words, training=training))
    values = gather_sum(projected, steps.values, training=training)
    return layer(steps._replace(values=values), training=training)


def lstm_layers(
    encoder: Any, suffix: str = ""
) -> tuple[TrigramEmbedding, PeepholeLSTM]:
    """Creates an LSTM, and the trigram embedding that computes its inputs."""
    lstm = PeepholeLSTM(
        encoder.cells,
        encoder.peephole,
        encoder.forget_gate,
        encoder.truncate,
        project_inputs=False,
        dtype=encoder.dtype_policy,
        name=f"lstm{suffix}",
    )
    width = encoder.cells * len(lstm.cell.gates)
    lstm.build((None, None, width))
    return encoder._embedding(width, f"embedding{suffix}"), lstm


@register
class RNNEncoder(TextEncoder):
    """Runs an RNN over the words; y at the last word is the vector.

    Palangi et al. 2016, section III-A, eq. (1). With 288 units it has as many
    parameters as an LSTM of 96 cells.

    Args:
        units: Width of the state and of the vector, default 288.
        truncate: Number of words that the gradient goes back from the last
            one, the T of (7). Default `None` for all.
        **kwargs: Arguments of `TextEncoder`.

    Example:
    >>> RNNEncoder(units=8).encode(["hex bolt", "wood glue"]).shape
    (2, 8)
    """

    def __init__(
        self, units: int = 288, truncate: int | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        check_at_least(1, units=units)
        self.units = self.dimension = units
        self.truncate = truncate
        self.embedding = self._embedding(units, "embedding")
        cell = RNNCell(
            units, project_inputs=False, dtype=self.dtype_policy, name="cell"
        )
        self.rnn = Recurrent(
            cell, truncate, dtype=self.dtype_policy, name="rnn"
        )
        self.rnn.build((None, None, units))

    def compose(self, words: WordBatch, training: bool = False) -> tf.Tensor:
        """Encodes each distinct text as the RNN's output at its last word."""
        return run_network(self.embedding, self.rnn, words, training)

    @property
    def networks(self) -> list[tuple[TrigramEmbedding, Recurrent]]:
        """The RNN and its embedding."""
        return [(self.embedding, self.rnn)]


@register
class LSTMEncoder(TextEncoder):
    """Runs an LSTM over the words; y at the last word is the vector.

    Palangi et al. 2016, section III-B, eq. (2). The defaults are those of the
    paper's experiments: no peepholes and no forget gate.

    Args:
        cells: Number of cells, the width of the vector, default 96.
        peephole: `None`, the default, `"diagonal"` or `"full"`; see
            `PeepholeLSTMCell`.
        forget_gate: Whether the cells have a forget gate, default `False`.
        truncate: Number of words that the gradient goes back from the last
            one, the T of (7). Default `None` for all.
        **kwargs: Arguments of `TextEncoder`.

    Example:
    >>> LSTMEncoder(cells=32)(tf.constant(["hotels in shanghai"])).shape
    TensorShape([1, 32])
    """

    def __init__(
        self,
        cells: int = 96,
        peephole: str | None = None,
        forget_gate: bool = False,
        truncate: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.cells = self.dimension = cells
        self.peephole = peephole
        self.forget_gate = forget_gate
        self.truncate = truncate
        self.embedding, self.lstm = lstm_layers(self)

    def compose(self, words: WordBatch, training: bool = False) -> tf.Tensor:
        """Encodes each distinct text as the LSTM's output at its last word."""
        return run_network(self.embedding, self.lstm, words, training)

    @property
    def networks(self) -> list[tuple[TrigramEmbedding, Recurrent]]:
        """The LSTM and its embedding."""
        return [(self.embedding, self.lstm)]


@register
class BidirectionalLSTMEncoder(LSTMEncoder):
    """Runs one LSTM forward and another backward over the words.

    Palangi et al. 2016, section V. The second LSTM has its own weights. The
    vector is the two final outputs concatenated, twice `cells` wide.

    Args:
        cells: Number of cells of each LSTM, default 96.
        **kwargs: Arguments of `LSTMEncoder`.

    Example:
    >>> encoder = BidirectionalLSTMEncoder(cells=8)
    >>> encoder.encode(["hex bolt", "wood glue"]).shape
    (2, 16)
    """

    def __init__(self, cells: int = 96, **kwargs: Any) -> None:
        super().__init__(cells, **kwargs)
        self.dimension = 2 * cells
        self.backward_embedding, self.backward_lstm = lstm_layers(
            self, "_backward"
        )

    def compose(self, words: WordBatch, training: bool = False) -> tf.Tensor:
        """Encodes each distinct text by an LSTM in each direction.

        The vector joins the final outputs of both.
        """
        forward = super().compose(words, training)
        reverse = tf.reverse_sequence(words.words, words.lengths, seq_axis=1)
        backward = run_network(
            self.backward_embedding,
            self.backward_lstm,
            words._replace(words=reverse),
            training,
        )
        return tf.concat([forward, backward], axis=-1)

    @property
    def networks(self) -> list[tuple[TrigramEmbedding, Recurrent]]:
        """The LSTM that reads forward, and the one that reads backward."""
        return [
            *super().networks,
            (self.backward_embedding, self.backward_lstm),
        ]
