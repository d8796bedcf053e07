"""`TextEncoder`, the base class of encoders, and the recurrent encoders."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.errors import (
    check_at_least,
    check_export_format,
    check_keras_file,
    check_precision,
)
from keras_lstm_dssm.layers.fixed_words import WordRows
from keras_lstm_dssm.layers.letter_trigrams import (
    LetterTrigrams,
    SyncedWeights,
    TrigramEmbedding,
    gather_sum,
    trigram_embeddings,
)
from keras_lstm_dssm.layers.recurrent import (
    PeepholeLSTM,
    Recurrent,
    pack,
    run_single_sequence,
)
from keras_lstm_dssm.layers.recurrent_cells import RNNCell
from keras_lstm_dssm.ops import unit
from keras_lstm_dssm.private_api import accept_any_inputs, mark_as_built
from keras_lstm_dssm.registration import added_arguments, register
from keras_lstm_dssm.text.many_texts import HashedTextCache, encode_in_batches
from keras_lstm_dssm.text.word_hashing import (
    WordBatch,
    as_strings,
    check_string_input,
)

TOWERS, WORDS, SKETCH = "towers", "words", "sketch"
"""The values of `Part.kind`. `TOWERS`: the columns are trained on clicks.
`WORDS`: the columns are fitted to a teacher. `SKETCH`: nothing is trained."""


def sum_words(layer: Any, words: WordBatch, training: bool = False) -> Any:
    """Sums a layer's word vectors over each distinct text, `(texts, width)`."""
    rows = layer(words, training=training)
    return gather_sum(rows, *words.flat(), training=training)


@dataclass(frozen=True)  # no `NamedTuple`: Keras would track the layers
class Part:
    """Describes columns of an encoder's vectors and how to compute them."""

    kind: str  # `TOWERS`, `WORDS` or `SKETCH`
    widths: Mapping[str, int]  # name of a group -> number of columns
    layers: Sequence[Any]  # the first arguments of `compute`
    length: float = 1.0  # Euclidean length of these columns in each vector
    compute: Callable[..., tf.Tensor] = sum_words
    scale: Callable[[tf.Tensor], tf.Tensor] = unit  # scales to length 1

    def compose(self, words: WordBatch, training: bool = False) -> tf.Tensor:
        """Computes an unscaled vector of each distinct text."""
        return self.compute(*self.layers, words, training)


def columns(
    parts: Sequence[Part], words: WordBatch, training: bool = False
) -> tf.Tensor:
    """Computes all parts of the vectors of distinct texts, `(texts, width)`."""
    return scaled(parts, [part.compose(words, training) for part in parts])


def scaled(parts: Sequence[Part], vectors: Sequence[tf.Tensor]) -> tf.Tensor:
    """Scales and concatenates `vectors`, the results of `Part.compose`."""
    pairs = zip(parts, vectors, strict=True)
    return tf.concat([p.scale(y) * p.length for p, y in pairs], axis=-1)


def widths(parts: Sequence[Part]) -> dict[str, int]:
    """Returns one dict with the `widths` of all parts, in the parts' order."""
    return {name: n for part in parts for name, n in part.widths.items()}


WHOLE_VECTOR = "whole vector"
"""Name of all columns of a vector that has a single part."""


class TextEncoder(SyncedWeights, keras.Model):
    """Base class of encoders: hashes texts, then composes vectors from words.

    A subclass implements `compose`, and creates all weights in its constructor;
    `_embedding` creates a trigram table. An encoder is a Keras model: it can be
    saved, loaded, and used in functional models on `keras.Input((),
    dtype="string")`.

    Args:
        alphabet: `"ascii"`, the only value; see `LetterTrigrams`.
        oov_buckets: Number of ids for trigrams with a letter outside the
            alphabet, default 0; see `LetterTrigrams`.
        max_words: Number of words to read of a text, default 128; `None`: all.
        split: `"space"` (default), `"alphanumeric"` or `"stems"`, the rule
            that separates words; see `normalize_texts`.
        **kwargs: Arguments of `keras.Model`. `dtype` is `"float32"` or
            `"float64"`; mixed precision is not supported.

    Call arguments:
        inputs: Strings `(batch,)`, or a `WordBatch`.
        training: Whether a gradient will be computed, default `False`.

    Returns:
        `(batch, dimension)`, the sentence vectors y of Palangi et al. 2016,
        not of unit length. `encode` returns unit vectors.

    Raises:
        InputError: An argument or the dtype is not supported.

    Example:
    >>> encoder = dssm.DSSMEncoder(units=[12, 8])
    >>> isinstance(encoder, TextEncoder), encoder.dimension
    (True, 8)
    >>> vectors = encoder.encode(["hex bolt", "wood glue"])
    >>> bool(np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6))
    True
    """

    dimension: int  # width of the vectors
    fitted = False  # whether `fit_words` sets the weights, without training

    def __init__(
        self,
        *,
        alphabet: str = "ascii",
        oov_buckets: int = 0,
        max_words: int | None = 128,
        split: str = "space",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_precision(self)
        self.trigrams = self._hashing(
            alphabet=alphabet,
            oov_buckets=oov_buckets,
            max_words=max_words,
            split=split,
        )
        self._graph: tf.types.experimental.ConcreteFunction | None = None
        accept_any_inputs(self)
        mark_as_built(self, (None,))

    @property
    def input_dtype(self) -> str:
        """The dtype of the inputs, for the signature that Keras makes."""
        return "string"

    def _hashing(self, **rules: Any) -> Any:
        return LetterTrigrams(**rules, name="trigrams")

    def build(self, input_shape: Any) -> None:
        """Does nothing: the constructor has created all weights."""

    def compose(self, words: WordBatch, training: bool = False) -> tf.Tensor:
        """Computes the vector of each distinct text, `(texts, dimension)`.

        `words` are the hashed texts; `words.text_index` maps the rows of the
        batch to the distinct texts.
        """
        raise NotImplementedError(f"{type(self).__name__}.compose")

    def blocks(
        self, words: WordBatch, training: bool = False
    ) -> tuple[tf.Tensor, ...]:
        """Computes the vectors as blocks of columns, for a loss.

        If all columns are trained, there is one block. Otherwise there are two
        blocks, the trained columns and the untrained columns. Concatenated,
        the two blocks form vectors of length 1.
        """
        return (self.compose(words, training),)

    def call(self, inputs: Any, training: bool = False) -> tf.Tensor:
        """Computes the vectors, see `Call arguments` of the class."""
        if not training and tf.executing_eagerly():
            self.sync_weights()
        if not hasattr(inputs, "text_index"):  # strings
            inputs = self.trigrams.distinct(inputs)
        return tf.gather(self.compose(inputs, training), inputs.text_index)

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, int]:
        """Returns the shape of the vectors, `(batch, dimension)`."""
        return input_shape[0], self.dimension

    def compute_output_spec(
        self, inputs: Any, training: bool = False
    ) -> keras.KerasTensor:
        """Returns shape and dtype of the vectors of strings `(batch,)`.

        Raises `InputError` if the input is not a batch of strings.
        """
        check_string_input("an encoder", inputs)
        return keras.KerasTensor(
            self.compute_output_shape(inputs.shape), self.compute_dtype
        )

    def encode(
        self,
        texts: Sequence[str | bytes],
        batch_size: int = 2048,
        progress: bool = False,
    ) -> np.ndarray:
        """Encodes any number of texts into unit vectors.

        Args:
            texts: List or array of strings. Empty texts and any bytes are
                allowed.
            batch_size: Number of texts to encode at once. Default 2048.
            progress: Whether to show a progress bar. Default `False`.

        Returns:
            Array `[len(texts), dimension]` of the encoder's dtype, by default
            float32, with rows of length 1 in the order of `texts`.

        Raises:
            InputError: An element of `texts` is not a string.

        Example:
        >>> encoder.encode(["hotels in shanghai", ""]).shape
        (2, 96)
        """
        self.sync_weights()
        return encode_in_batches(
            self._encode_batch, texts, batch_size, progress
        )

    def unit_vectors(self, texts: tf.Tensor) -> tf.Tensor:
        """Encodes a string tensor `(batch,)` into unit vectors."""
        if tf.executing_eagerly():
            self.sync_weights()
        return self._encode_batch(texts)

    def unit_vector(self, text: tf.Tensor) -> tf.Tensor:
        """Encodes one short text `(1,)` into a unit vector `(1, dimension)`.

        `is_short` must be true for the text. `unit_vector` is faster than
        `unit_vectors`. Both methods give equal vectors up to rounding.
        """
        return unit(self.compose(self.trigrams.single(text)))

    def is_short(self, texts: tf.Tensor) -> tf.Tensor:
        """Returns whether a batch is one short text, as `unit_vector` needs."""
        return self.trigrams.is_short(texts)

    def _encode_batch(self, texts: tf.Tensor) -> tf.Tensor:
        if not tf.executing_eagerly():
            # An export may read the table's rows from other variables. `_graph`
            # would read `TrigramEmbedding.table`, so `_graph` is not used.
            return unit(self(texts))
        if self._graph is None:
            self._graph = tf.function(
                lambda text: unit(self(text)), autograph=False
            ).get_concrete_function(tf.TensorSpec([None], tf.string, "text"))
        return self._graph(texts)

    def predict(self, x: Any, *args: Any, **kwargs: Any) -> np.ndarray:
        """Encodes texts into vectors `[texts, dimension]`, not of length 1.

        x is a dataset of string batches, or any sequence of strings. For the
        other arguments see `keras.Model.predict`.
        """
        self.sync_weights()
        if not isinstance(x, tf.data.Dataset):
            x = as_strings(x)
        return super().predict(x, *args, **kwargs)

    def predict_on_batch(self, x: Any) -> np.ndarray:
        """Encodes one batch of texts, see `predict`."""
        self.sync_weights()
        return super().predict_on_batch(as_strings(x))

    def save(self, filepath: Any, *args: Any, **kwargs: Any) -> None:
        """Saves the encoder as a `.keras` file, see `keras.Model.save`.

        Raises:
            InputError: `filepath` is an HDF5 file.
        """
        check_keras_file(filepath)
        super().save(filepath, *args, **kwargs)

    def export(
        self,
        filepath: Any,
        format: str = "tf_saved_model",
        verbose: bool | None = None,
        input_signature: Any = None,
        **kwargs: Any,
    ) -> None:
        """Writes a SavedModel, see `keras.Model.export`.

        The SavedModel's vectors do not have unit length. `TwoTower.export` and
        `export_models` write SavedModels for TF Serving, with unit vectors,
        batching and warm-up. To load the SavedModel in Python, import
        `tensorflow_text` first.

        `format` must be `"tf_saved_model"`, because other formats have no
        string operations. `input_signature` is strings `(batch,)` by default.

        Raises:
            InputError: `format` is not `"tf_saved_model"`.
        """
        check_export_format(self, format)
        self.sync_weights()
        if input_signature is None:
            input_signature = [tf.TensorSpec([None], tf.string, "text")]
        super().export(
            filepath,
            format=format,
            verbose=verbose,
            input_signature=input_signature,
            **kwargs,
        )

    @property
    def resources(self) -> list[Any]:
        """Objects that a SavedModel needs in addition to variables."""
        return []

    @property
    def needs_adapt(self) -> bool:
        """Whether `adapt` must be called before training."""
        return False

    def adapt(self, texts: Sequence[str | bytes], **kwargs: Any) -> None:
        """Computes statistics of distinct titles, if the encoder needs any."""

    def training_cache(self, cache: HashedTextCache) -> Any:
        """Returns the cache for training: `cache`, or a wrapper of `cache`."""
        return cache

    @property
    def networks(self) -> list[tuple[TrigramEmbedding, Recurrent]]:
        """The trigram embedding and the layer of each recurrent network.

        The second network, if any, reads from right to left.
        """
        return []

    @property
    def extra_state(self) -> list[np.ndarray]:
        """Arrays, other than weights, on which the vectors depend."""
        return []

    @property
    def vector_parts(self) -> tuple[Part, ...]:
        """The parts of a vector; by default a single part."""
        kind, compose = WORDS if self.fitted else TOWERS, type(self).compose
        return (Part(kind, {WHOLE_VECTOR: self.dimension}, [self], 1, compose),)

    def parts(self) -> dict[str, int]:
        """Returns the number of columns of each group, by the group's name."""
        return widths(self.vector_parts)

    @property
    def embeddings(self) -> list[TrigramEmbedding]:
        """All trigram embeddings of the encoder."""
        return trigram_embeddings(self)

    @property
    def tables(self) -> list[keras.Variable]:
        """The trainable tables of the embeddings."""
        return [layer.table for layer in self.embeddings if layer.trainable]

    def _embedding(self, units: int, name: str) -> TrigramEmbedding:
        return TrigramEmbedding(
            units, self.trigrams.size, dtype=self.dtype_policy, name=name
        )

    def _word_rows(self, *sizes: int) -> WordRows:
        return WordRows(*sizes, dtype=self.dtype_policy, name="word_rows")

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor arguments as a dict, for `from_config`."""
        hashing = self.trigrams.get_config()
        names = ("alphabet", "oov_buckets", "max_words", "split")
        return {
            "name": self.name,
            "dtype": self.dtype_policy.name,
            **{name: hashing[name] for name in names},
            **added_arguments(self, TextEncoder),
        }


def run_network(
    embedding: TrigramEmbedding,
    layer: Recurrent,
    words: WordBatch,
    training: bool,
) -> tf.Tensor:
    """Returns a layer's output at the last word of each distinct text."""
    if words.words.shape[0] == 1 and not training:
        # A batch of one text has no padding, so its words need no packing.
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
    """Creates the trigram embedding of an LSTM, and the LSTM."""
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

    Palangi et al. 2016, section III-A, eq. (1). An RNN with 288 units has about
    as many parameters as an LSTM with 96 cells.

    Args:
        units: Width of the state and of the vector, default 288.
        truncate: Number of words before the last word that the gradient
            reaches, T in eq. (7). Default `None` for all.
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
        """Encodes each distinct text as the RNN's output at the last word."""
        return run_network(self.embedding, self.rnn, words, training)

    @property
    def networks(self) -> list[tuple[TrigramEmbedding, Recurrent]]:
        """The RNN and its embedding."""
        return [(self.embedding, self.rnn)]


@register
class LSTMEncoder(TextEncoder):
    """Runs an LSTM over the words; y at the last word is the vector.

    Palangi et al. 2016, section III-B, eq. (2). The defaults agree with the
    paper's experiments: no peepholes and no forget gate.

    Args:
        cells: Number of cells, the width of the vector, default 96.
        peephole: `None`, the default, `"diagonal"` or `"full"`; see
            `PeepholeLSTMCell`.
        forget_gate: Whether the cells have a forget gate, default `False`.
        truncate: Number of words before the last word that the gradient
            reaches, T in eq. (7). Default `None` for all.
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
        """Encodes each distinct text as the LSTM's output at the last word."""
        return run_network(self.embedding, self.lstm, words, training)

    @property
    def networks(self) -> list[tuple[TrigramEmbedding, Recurrent]]:
        """The LSTM and its embedding."""
        return [(self.embedding, self.lstm)]


@register
class BidirectionalLSTMEncoder(LSTMEncoder):
    """Runs one LSTM forward and another backward over the words.

    Palangi et al. 2016, section V. The LSTMs have separate weights. The vector
    is the concatenation of their final outputs, of width `2 * cells`.

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
        """Concatenates both LSTMs' final outputs for each distinct text."""
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
        """The forward LSTM, then the backward LSTM."""
        return [
            *super().networks,
            (self.backward_embedding, self.backward_lstm),
        ]
