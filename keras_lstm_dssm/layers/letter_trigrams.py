"""Layers of word hashing, and the embedding of letter trigrams.

`TrigramEmbedding` computes W l(t) without the vector l(t) of 50,653 numbers.
`SyncedWeights` brings lazily updated rows up to date before they are read.
"""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.errors import InputError, check_at_least
from keras_lstm_dssm.private_api import (
    accept_any_inputs,
    all_layers,
    custom_gradient,
)
from keras_lstm_dssm.registration import Configured, register
from keras_lstm_dssm.tables import (
    HashedUniform,
    changed_rows,
    read_table,
    write_table,
)
from keras_lstm_dssm.text.caches import HashedTextCache
from keras_lstm_dssm.text.strings import as_strings
from keras_lstm_dssm.text.word_batch import WordBatch, distinct_words
from keras_lstm_dssm.text.word_hashing import (
    TRIGRAMS,
    check_split,
    split_words,
    trigram_ids,
)


@register
class LetterTrigrams(Configured, keras.layers.Layer):
    """Hashes each word of each text into its letter trigrams.

    Computes `l(t) = W_h x(t)` of Palangi et al. 2016, eq. (1). W_h is fixed:
    the layer has no weights and needs no vocabulary. The ids are the same if
    the layer is called directly, in `Dataset.map` before or after batching,
    in a `tf.function` and in a saved model.

    Args:
        alphabet: `"ascii"`, the default and the only value: the paper's
            alphabet of `#`, a to z and 0 to 9.
        oov_buckets: Number of ids for trigrams with a letter outside the
            alphabet, beyond the 50,653 of the alphabet. With 0, the default
            and the paper's choice, such a letter is read as `#`, so that
            words of other scripts differ in their lengths only. A few
            thousand buckets distinguish them.
        max_words: Number of words to read of each text, default 128; `None`
            for all. The bound keeps one very long text from slowing down its
            whole batch.
        split: Rule that separates words, default `"space"`, the paper's
            choice; see `normalize_texts`.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        texts: Strings `(batch,)`: a tensor, an array or a list.

    Returns:
        Ragged int32 tensor `(batch, (words), (trigrams))`.

    Example:
    >>> LetterTrigrams()(["good", ""]).to_list()
    [[[274, 10153, 21094, 20683]], [[0]]]
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
                "scripts keep it and set oov_buckets, e.g. 8192"
            )
        check_at_least(0, oov_buckets=oov_buckets)
        check_split(max_words, split)
        self.alphabet = alphabet
        self.oov_buckets = oov_buckets
        self.max_words = max_words
        self.split = split
        # Strings must reach `call` untouched, and XLA has no string ops.
        accept_any_inputs(self)
        self.supports_jit = False
        self.build((None,))

    @property
    def size(self) -> int:
        """Number of different ids, and of rows that an embedding needs."""
        return TRIGRAMS + self.oov_buckets

    def call(self, texts: Any) -> tf.RaggedTensor:
        """Lists the trigram ids of each word of each text."""
        words = split_words(as_strings(texts), self.max_words, self.split)
        ids, word = trigram_ids(words.flat_values, self.oov_buckets)
        count = tf.cast(tf.size(words.flat_values), tf.int64)
        return words.with_flat_values(
            tf.RaggedTensor.from_value_rowids(
                ids, tf.cast(word, tf.int64), nrows=count
            )
        )

    def distinct(self, texts: Any) -> WordBatch:
        """Hashes texts into a `WordBatch`, each distinct word once.

        Args:
            texts: Strings `(batch,)`, as for a call.
        """
        return distinct_words(
            as_strings(texts), self.oov_buckets, self.max_words, self.split
        )

    def cache(self) -> HashedTextCache:
        """Creates an empty cache of texts hashed with this layer's settings."""
        return HashedTextCache(self.oov_buckets, self.max_words, self.split)

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """Returns the shape `(batch, words, trigrams)`, the last two `None`."""
        return input_shape[0], None, None

    def compute_output_spec(self, texts: Any) -> keras.KerasTensor:
        """Returns shape and dtype of the output in a functional model."""
        shape = self.compute_output_shape(texts.shape)
        return keras.KerasTensor(shape, "int32", ragged=True)


class SyncedWeights(keras.layers.Layer):
    """Base of layers and models some of whose rows are updated lazily.

    An optimizer that updates a table's rows when a batch reads them
    (`LazyRows`) sets `before_read` to a function that brings all rows up to
    date. It is called before the weights are read or replaced as a whole: by
    `get_weights`, `set_weights`, saving and loading.
    """

    before_read: Callable[[], None] | None = None

    def sync_weights(self) -> None:
        """Applies the pending updates of table rows that optimizers defer."""
        if self.before_read is not None:
            self.before_read()

    def get_weights(self) -> list[np.ndarray]:
        """Returns all weights, with pending updates of table rows applied.

        Optimizers update rows of large tables lazily;
        `keras.layers.Layer` describes the result.
        """
        self.sync_weights()
        return super().get_weights()

    def set_weights(self, weights: list[np.ndarray]) -> None:
        """Sets all weights from a list of arrays, as every Keras layer does."""
        self.sync_weights()  # a pending update would change the new rows
        super().set_weights(weights)

    def save_own_variables(self, store: Any) -> None:
        """Saves the variables, up to date, see `keras.layers.Layer`.

        Keras calls it for a model before the layers and the optimizer inside
        it, so that all of them are saved after the same training step.
        """
        self.sync_weights()
        super().save_own_variables(store)

    def load_own_variables(self, store: Any) -> None:
        """Loads the variables, as `keras.layers.Layer` describes."""
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

    The encoders use it for words (the sum of the rows of a word's trigrams),
    for time steps (the row of the word at the step) and for bags of words.

    TensorFlow's gradients of a gather and of a sparse segment sum add rows
    one by one, in the order of `index`. After a sort by `index` the gradient
    is a segment sum, too, and three to four times faster; `order` sorts
    `index`, if it is known. Without `training`, the gradient is TensorFlow's:
    loaders of an exported graph would warn of a custom one.
    """
    index = tf.convert_to_tensor(index)

    def sum_rows(values: tf.Tensor) -> tf.Tensor:
        if segment is None:
            return tf.gather(values, index)
        return tf.sparse.segment_sum(
            values, index, segment, num_segments=segments
        )

    if not training:
        return sum_rows(values)

    def gradient(error: tf.Tensor) -> tf.Tensor:
        sorting = tf.argsort(index) if order is None else order
        source = sorting if segment is None else tf.gather(segment, sorting)
        return tf.sparse.segment_sum(
            tf.convert_to_tensor(error),  # sparse if a gather follows
            source,
            tf.gather(index, sorting),
            num_segments=tf.shape(values)[0],
        )

    @custom_gradient
    def forward(values: tf.Tensor) -> tuple[tf.Tensor, Any]:
        return sum_rows(values), gradient

    return forward(values)


def copy_weights(source: Any, target: Any) -> None:
    """Copies all weights of a model, and the initializers of its tables.

    A file holds the rows of a table that differ from its initializer's values.
    """
    target.set_weights(source.get_weights())
    for each, copy in zip(
        trigram_embeddings(source), trigram_embeddings(target), strict=True
    ):
        copy.initializer = each.initializer


def trigram_embeddings(model: Any) -> list["TrigramEmbedding"]:
    """Returns the layers of a model that are `TrigramEmbedding`s, in order."""
    return [
        layer
        for layer in all_layers(model)
        if isinstance(layer, TrigramEmbedding)
    ]


@register
class TrigramEmbedding(SyncedWeights):
    """Multiplies each distinct word's trigram counts by the input weights.

    `W l(t)` is the sum of the rows of W for the word's trigrams. The layer
    gathers each distinct row once and sums the rows of each word. The columns
    of the table are the units of all gates side by side.

    Args:
        size: Number of rows of the table, see `LetterTrigrams.size`.
        units: Number of columns of the table.
        initializer: Initializer of the table. Default `None`: uniform in
            [-0.05, 0.05], see `HashedUniform`, of which files hold only the
            rows that have changed since.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        words: `WordBatch` with `n` distinct words.
        training: Whether a gradient will be computed, default `False`; see
            `gather_sum`.

    Returns:
        Float tensor `(n, units)`.

    Example:
    >>> trigrams = dssm.LetterTrigrams()
    >>> embedding = TrigramEmbedding(trigrams.size, units=4)
    >>> words = trigrams.distinct(["hex bolt", "bolt"])  # two distinct words
    >>> embedding(words).shape
    TensorShape([2, 4])
    """

    def __init__(
        self,
        size: int,
        units: int,
        initializer: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.size = size
        self.units = units
        self.initializer = keras.initializers.get(
            initializer or HashedUniform()
        )
        self.read_rows: Callable[[tf.Tensor], tf.Tensor] | None = None
        """Reads rows in place of the table, while an export is traced."""
        self.read_ahead: Callable[[tf.Tensor], tf.Tensor] | None = None
        """Reads rows at the look-ahead point (`LazyRows`), in training."""
        self.table = self.add_weight(
            shape=(size, units), initializer=self.initializer, name="table"
        )
        self.build((None,))

    def call(self, words: WordBatch, training: bool = False) -> tf.Tensor:
        """Computes each word's vector, the sum of its trigrams' table rows."""
        if self.read_rows:
            rows = self.read_rows(words.trigrams)
        elif training and self.read_ahead:
            rows = self.read_ahead(words.trigrams)
        else:
            # `.value` is TensorFlow's variable, whose rows are gathered
            # without a copy of the table.
            rows = tf.gather(self.table.value, words.trigrams)
        return gather_sum(
            rows,
            words.trigram_index,
            words.word_index,
            training=training,
            order=words.trigram_order,
        )

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, int]:
        """Returns `(words, units)`."""
        return input_shape[0], self.units

    def save_own_variables(self, store: Any) -> None:
        """Saves the rows that differ from their initial values.

        See `write_table`; beside them seed and limit of a `HashedUniform`.
        """
        if not isinstance(self.initializer, HashedUniform):
            super().save_own_variables(store)
            return
        self.sync_weights()
        if write_table(store, "0", self.table.numpy(), self._start()):
            start = self.initializer.seed, self.initializer.limit
            store["start"] = np.array(start, np.float64)

    def load_own_variables(self, store: Any) -> None:
        """Loads a table that was saved whole or by its changed rows.

        In the second form, seed and limit of the initializer give all
        other rows.
        """
        if "start" not in store.keys():
            super().load_own_variables(store)
            return
        self.sync_weights()
        seed, limit = np.asarray(store["start"]).tolist()
        self.initializer = HashedUniform(limit, int(seed))
        table = read_table(store, "0", self.table.shape, self._start())
        self.table.assign(table)

    def changed_rows(self) -> np.ndarray:
        """Returns the numbers of rows that differ from their initial values.

        Those of another initializer than `HashedUniform` cannot be computed
        again: then all rows count as changed.
        """
        if not isinstance(self.initializer, HashedUniform):
            return np.arange(self.size)
        self.sync_weights()
        return changed_rows(self.table.numpy(), self._start())

    def _start(self) -> np.ndarray:
        start = self.initializer(self.table.shape, self.table.dtype)
        return np.asarray(start)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor arguments as a dict, for `from_config`."""
        return {
            **super().get_config(),
            "size": self.size,
            "units": self.units,
            "initializer": keras.initializers.serialize(self.initializer),
        }
