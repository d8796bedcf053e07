"""Layers that hash words to letter trigrams, and embed the trigrams."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.errors import InputError, check_at_least
from keras_lstm_dssm.ops import custom_gradient
from keras_lstm_dssm.private_api import accept_any_inputs, all_layers
from keras_lstm_dssm.registration import Configured, register
from keras_lstm_dssm.tables import (
    HashedUniform,
    changed_rows,
    read_table,
    write_table,
)
from keras_lstm_dssm.text.many_texts import HashedTextCache
from keras_lstm_dssm.text.word_hashing import (
    TRIGRAMS,
    WordBatch,
    as_strings,
    check_split,
    check_string_input,
    distinct_words,
    hash_single_text,
    is_single_short_text,
    normalize_and_split,
    pad_rows,
    trigram_ids,
)


@register
class LetterTrigrams(Configured, keras.layers.Layer):
    """Hashes each word of each text into its letter trigrams.

    Computes `l(t) = W_h x(t)` of Palangi et al. 2016, eq. (1). W_h is fixed:
    the layer has no weights and no vocabulary. The layer works in
    `Dataset.map` after batching, in a `tf.function` and in a saved model.

    From version 2.12, TF Serving supports all operations of the layer. A Python
    process that loads an exported model must import `tensorflow_text` first.

    The input of a functional model is `keras.Input((), dtype="string")`; a
    `keras.Sequential` needs no input.

    Args:
        alphabet: `"ascii"`, the default and the only value: the paper's
            alphabet of `#`, a to z and 0 to 9.
        oov_buckets: Number of ids for trigrams with a letter outside the
            alphabet. With 0 (default, the paper's choice), such letters are
            read as `#`, and words of other scripts differ only in length. A
            few thousand ids distinguish these words.
        max_words: Number of words to read of a text. Default 128; `None` for
            all.
        split: Rule that separates words, `"space"` (default, the paper's
            choice), `"alphanumeric"` or `"stems"`; see `normalize_texts`.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        texts: Strings `(batch,)`: a tensor, an array or a list. `fit` and
            `predict` of a Keras model accept tensors, arrays of the dtype
            `object` and datasets.

    Returns:
        Ragged int32 tensor `(batch, (words), (trigrams))`. Every text has at
        least one word, and every word at least one trigram.

    Raises:
        InputError: An argument is not supported, or the input is not a batch
            of strings.

    Example:
    >>> LetterTrigrams()(["good", ""]).to_list()
    [[[274, 10153, 21094, 20683]], [[0]]]

    As layers of a Keras model:

    >>> model = keras.Sequential([
    ...     LetterTrigrams(),
    ...     dssm.TrigramEmbedding(64),
    ...     dssm.Recurrent(dssm.PeepholeLSTMCell(32)),
    ... ])
    >>> model.compile("sgd", "mse")
    >>> texts = np.array(["hex bolt", "wood glue"], object)
    >>> history = model.fit(texts, np.zeros((2, 32)), verbose=0)
    >>> model.predict(texts, verbose=0).shape
    (2, 32)
    """

    def __init__(
        self,
        alphabet: str = "ascii",
        oov_buckets: int = 0,
        max_words: int | None = 128,
        split: str = "space",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if alphabet != "ascii":
            raise InputError(
                f"alphabet must be 'ascii', not {alphabet!r}; for other "
                "scripts keep 'ascii' and set oov_buckets, e.g. 8192"
            )
        check_at_least(0, oov_buckets=oov_buckets)
        check_split(max_words, split)
        self.alphabet = alphabet
        self.oov_buckets = oov_buckets
        self.max_words = max_words
        self.split = split
        accept_any_inputs(self)  # strings must reach `call` untouched
        self.supports_jit = False  # XLA has no string ops
        self.build((None,))

    @property
    def size(self) -> int:
        """Number of ids; an embedding needs a row for each id."""
        return TRIGRAMS + self.oov_buckets

    @property
    def rules(self) -> tuple[int, int | None, str]:
        """`oov_buckets`, `max_words` and `split`, which determine the ids."""
        return self.oov_buckets, self.max_words, self.split

    # `keras.Sequential` makes an input of the first layer's compute dtype.
    @property
    def compute_dtype(self) -> str:
        """The dtype of the inputs, as in `keras.layers.StringLookup`."""
        return "string"

    @property
    def variable_dtype(self) -> str:
        """Same as `compute_dtype`: the layer has no variables."""
        return "string"

    def words(self, texts: Any) -> tf.RaggedTensor:
        """Splits texts `(batch,)` into words: ragged `(batch, (words))`."""
        strings = as_strings(texts)
        return normalize_and_split(strings, self.max_words, self.split)

    def call(self, texts: Any) -> tf.RaggedTensor:
        """Lists the trigram ids of each word of each text."""
        words = self.words(texts)
        distinct, index = tf.unique(words.flat_values)
        ids, word = trigram_ids(distinct, self.oov_buckets)
        trigrams = tf.RaggedTensor.from_value_rowids(
            ids,
            tf.cast(word, tf.int64),
            tf.size(distinct, tf.int64),
            validate=False,
        )
        return words.with_flat_values(tf.gather(trigrams, index))

    def distinct(self, texts: Any) -> WordBatch:
        """Hashes each distinct word of texts `(batch,)` into a `WordBatch`."""
        return distinct_words(as_strings(texts), *self.rules)

    def single(self, text: tf.Tensor) -> WordBatch:
        """Hashes one short text `(1,)`, faster than `distinct`."""
        return hash_single_text(text, self.oov_buckets, self.split)

    def is_short(self, texts: tf.Tensor) -> tf.Tensor:
        """Returns whether a batch is one short text, as `single` needs."""
        return is_single_short_text(texts, self.max_words)

    def cache(self) -> HashedTextCache:
        """Creates an empty cache that hashes as `distinct` does, but faster."""
        return HashedTextCache(*self.rules)

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """Returns the shape `(batch, None, None)`."""
        return input_shape[0], None, None

    def compute_output_spec(self, texts: Any) -> keras.KerasTensor:
        """Returns shape and dtype of the output; the input must be strings."""
        check_string_input("LetterTrigrams", texts)
        shape = self.compute_output_shape(texts.shape)
        return keras.KerasTensor(shape, "int32", ragged=True)


class SyncedWeights(keras.layers.Layer):
    """Base of layers and models with tables that are updated lazily.

    A lazy optimizer updates a row only when a training step reads the row.
    """

    before_read: Callable[[], None] | None = None
    """Brings all weights up to date; `None` without `NesterovMomentum`."""

    def sync_weights(self) -> None:
        """Brings lazily updated rows up to date."""
        if self.before_read is not None:
            self.before_read()

    def get_weights(self) -> list[np.ndarray]:
        """Returns all weights as arrays, with all rows up to date."""
        self.sync_weights()
        return super().get_weights()

    def set_weights(self, weights: list[np.ndarray]) -> None:
        """Sets all weights from a list of arrays."""
        self.sync_weights()  # a pending update would change the new rows
        super().set_weights(weights)

    def save_own_variables(self, store: Any) -> None:
        """Saves all variables, with all rows up to date."""
        self.sync_weights()
        super().save_own_variables(store)

    def load_own_variables(self, store: Any) -> None:
        """Loads the variables; see `keras.layers.Layer`."""
        self.sync_weights()
        super().load_own_variables(store)


def gather_sum(
    values: tf.Tensor,
    index: tf.Tensor,
    segment: tf.Tensor | None = None,
    segments: tf.Tensor | None = None,
    training: bool = True,
    order: tf.Tensor | None = None,
) -> tf.Tensor:
    """Sums rows of `values` by segment, with a fast gradient.

        y[s] = sum over j with segment[j] = s of values[index[j]]

    `segments` is the number of segments. Without `segment`, y is
    `values[index]`. `order` has the indices that sort `index`. If `order` is
    `None`, the gradient sorts `index`.
    """
    index = tf.convert_to_tensor(index)

    def sum_rows(values: tf.Tensor) -> tf.Tensor:
        if segment is None:
            return tf.gather(values, index)
        return tf.sparse.segment_sum(
            values, index, segment, num_segments=segments
        )

    if not training:
        # TensorFlow would warn when it loads an export with a custom gradient.
        return sum_rows(values)

    # TensorFlow's gradient takes three to four times as long as this sum of
    # sorted rows.
    def gradient(error: tf.Tensor) -> tf.Tensor:
        sorting = tf.argsort(index) if order is None else order
        rows = sorting if segment is None else tf.gather(segment, sorting)
        return tf.sparse.segment_sum(
            # `error` is `tf.IndexedSlices` if a `tf.gather` reads the sums.
            tf.convert_to_tensor(error),
            rows,
            tf.gather(index, sorting),
            num_segments=tf.shape(values)[0],
        )

    @custom_gradient
    def forward(values: tf.Tensor) -> tuple[tf.Tensor, Any]:
        return sum_rows(values), gradient

    return forward(values)


def copy_weights(source: Any, target: Any) -> None:
    """Copies all weights of a model, and the initializers of its tables."""
    target.set_weights(source.get_weights())
    for layer, copy in zip(
        trigram_embeddings(source), trigram_embeddings(target), strict=True
    ):
        copy.initializer = layer.initializer


def trigram_embeddings(model: Any) -> list["TrigramEmbedding"]:
    """Returns a model's `TrigramEmbedding`s, in the order of `all_layers`."""
    return [
        layer
        for layer in all_layers(model)
        if isinstance(layer, TrigramEmbedding)
    ]


@register
class TrigramEmbedding(SyncedWeights):
    """Embeds words: adds up the table rows of each word's trigrams.

    The sum is the product `W l(t)` of Palangi et al. 2016, eq. (1), where W is
    the table. In a recurrent encoder, the table has columns for all gates.

    For ragged ids of `LetterTrigrams`, the vectors are padded with zeros and
    have a Keras mask of the words, bool `(batch, words)`. Layers such as
    `Recurrent`, `keras.layers.LSTM` and `keras.layers.GlobalAveragePooling1D`
    use the mask.

    Args:
        units: Number of columns of the table.
        size: Number of rows of the table, default 50,653; see
            `LetterTrigrams.size`.
        initializer: Initializer of the table. Default `None`:
            `HashedUniform()`, uniform in [-0.05, 0.05). With a `HashedUniform`,
            a saved model has only the rows that have changed.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: Ragged int32 ids `(batch, (words), (trigrams))`, each at least
            0 and below `size`; or a `WordBatch` with `n` distinct words.
        training: Whether the call is part of a training step. With `False`, the
            default, a gradient is correct, but slower to compute.

    Returns:
        For ragged ids a float tensor `(batch, words, units)`, where `words` is
        the number of words of the longest text, at least 1. For a `WordBatch`
        one vector for each distinct word, `(n, units)`.

    Raises:
        InputError: `units` or `size` is below 1, or the input is neither
            ragged ids nor a `WordBatch`.

    Example:
    >>> trigrams = dssm.LetterTrigrams()
    >>> embedding = TrigramEmbedding(units=4)
    >>> texts = ["hex bolt", "bolt"]
    >>> embedding(trigrams(texts)).shape
    TensorShape([2, 2, 4])
    >>> embedding(trigrams.distinct(texts)).shape  # two distinct words
    TensorShape([2, 4])
    """

    def __init__(
        self,
        units: int,
        size: int = TRIGRAMS,
        initializer: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_at_least(1, units=units, size=size)
        self.units = units
        self.size = size
        self.initializer = keras.initializers.get(
            initializer or HashedUniform()
        )
        self.read_rows: Callable[[tf.Tensor], tf.Tensor] | None = None
        """Reads rows of the table; set only while an export is traced."""
        self.read_ahead: Callable[[tf.Tensor], tf.Tensor] | None = None
        """Reads rows of the table in training, for a lazy optimizer."""
        self.table = self.add_weight(
            shape=(size, units), initializer=self.initializer, name="table"
        )
        self.supports_masking = True
        self.build((None,))

    def call(
        self, inputs: tf.RaggedTensor | WordBatch, training: bool = False
    ) -> tf.Tensor:
        """Adds up the rows of each word's trigrams."""
        if isinstance(inputs, WordBatch):
            return gather_sum(
                self._rows(inputs.trigrams, training),
                inputs.trigram_index,
                inputs.word_index,
                training=training,
                order=inputs.trigram_order,
            )
        if getattr(inputs, "ragged_rank", 0) != 2:
            raise _not_ragged_ids(inputs)
        words = inputs.values
        trigrams, index = tf.unique(words.values)
        vectors = gather_sum(
            self._rows(trigrams, training),
            index,
            words.value_rowids(),
            words.nrows(),
            training,
        )
        vectors = tf.cast(vectors, self.compute_dtype)
        return pad_rows(inputs.with_values(vectors))

    def _rows(self, trigrams: tf.Tensor, training: bool) -> tf.Tensor:
        if self.read_rows:
            return self.read_rows(trigrams)
        if training and self.read_ahead:
            return self.read_ahead(trigrams)
        # `value` is a `tf.Variable`, so `tf.gather` copies only these rows.
        return tf.gather(self.table.value, trigrams)

    def compute_mask(self, inputs: Any, previous_mask: Any = None) -> Any:
        """Returns the mask of the words of ragged ids, bool `(batch, words)`.

        Returns `None` for a `WordBatch` and for a symbolic input.
        """
        if not isinstance(inputs, tf.RaggedTensor):
            return None
        lengths = inputs.row_lengths()
        time = tf.maximum(tf.reduce_max(lengths), 1)
        return tf.sequence_mask(lengths, time)

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """Returns the shape `(batch, words, units)`."""
        return *input_shape[:2], self.units

    def compute_output_spec(
        self, inputs: Any, training: bool = False
    ) -> keras.KerasTensor:
        """Returns shape and dtype of the output; the input must be ragged."""
        if not (inputs.ragged and len(inputs.shape) == 3):
            raise _not_ragged_ids(inputs)
        shape = self.compute_output_shape(inputs.shape)
        return keras.KerasTensor(shape, self.compute_dtype)

    def save_own_variables(self, store: Any) -> None:
        """Saves all rows, or only the changed rows; see `write_table`."""
        if not isinstance(self.initializer, HashedUniform):
            super().save_own_variables(store)
            return
        self.sync_weights()
        if write_table(store, "0", self.table.numpy(), self._initial_table()):
            start = self.initializer.seed, self.initializer.limit
            store["start"] = np.array(start, np.float64)

    def load_own_variables(self, store: Any) -> None:
        """Loads a table; a file holds all rows, or only the changed rows."""
        if "start" not in store.keys():
            super().load_own_variables(store)
            return
        self.sync_weights()
        seed, limit = np.asarray(store["start"]).tolist()
        self.initializer = HashedUniform(limit, int(seed))
        table = read_table(store, "0", self.table.shape, self._initial_table())
        self.table.assign(table)

    def changed_rows(self) -> np.ndarray:
        """Returns the indices of rows that differ from their initial values.

        Returns all indices if the initializer is not a `HashedUniform`.
        """
        if not isinstance(self.initializer, HashedUniform):
            return np.arange(self.size)
        self.sync_weights()
        return changed_rows(self.table.numpy(), self._initial_table())

    def _initial_table(self) -> np.ndarray:
        return np.asarray(self.initializer(self.table.shape, self.table.dtype))

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor arguments as a dict, for `from_config`."""
        return {
            **super().get_config(),
            "units": self.units,
            "size": self.size,
            "initializer": keras.initializers.serialize(self.initializer),
        }


def _not_ragged_ids(inputs: Any) -> InputError:
    return InputError(
        "TrigramEmbedding reads the ragged ids of LetterTrigrams, int32 "
        "(batch, (words), (trigrams)), or a WordBatch; got "
        f"{keras.backend.standardize_dtype(inputs.dtype)} "
        f"{tuple(inputs.shape)} without these ragged dimensions"
    )
