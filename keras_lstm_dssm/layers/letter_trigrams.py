"""LetterTrigrams: word hashing, from strings to ids of letter trigrams."""

from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.private_api import accept_any_inputs
from keras_lstm_dssm.registration import register
from keras_lstm_dssm.text import (
    TRIGRAMS,
    HashedTextCache,
    WordBatch,
    as_strings,
    check_split,
    distinct_words,
    split_words,
    trigram_ids,
)


@register
class LetterTrigrams(keras.layers.Layer):
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
        if oov_buckets < 0:
            raise InputError(f"oov_buckets must be >= 0, not {oov_buckets}")
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

    def build(self, input_shape: Any) -> None:
        """Do nothing: there are no weights.

        Args:
            input_shape: `(batch,)`, recorded by Keras for summaries.
        """

    def call(self, texts: Any) -> tf.RaggedTensor:
        """List the trigram ids of each word of each text."""
        words = split_words(as_strings(texts), self.max_words, self.split)
        ids, word = trigram_ids(words.flat_values, self.oov_buckets)
        count = tf.cast(tf.size(words.flat_values), tf.int64)
        return words.with_flat_values(
            tf.RaggedTensor.from_value_rowids(
                ids, tf.cast(word, tf.int64), nrows=count
            )
        )

    def distinct(self, texts: Any) -> WordBatch:
        """Hash texts into a `WordBatch`, each distinct word once.

        Args:
            texts: Strings `(batch,)`, as for a call.
        """
        return distinct_words(
            as_strings(texts), self.oov_buckets, self.max_words, self.split
        )

    def cache(self) -> HashedTextCache:
        """Create an empty cache of hashed texts, with this layer's settings."""
        return HashedTextCache(self.oov_buckets, self.max_words, self.split)

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """Return `(batch, words, trigrams)`, of which the last two vary."""
        return input_shape[0], None, None

    def compute_output_spec(self, texts: Any) -> keras.KerasTensor:
        """Return shape and dtype of the output in a functional model."""
        shape = self.compute_output_shape(texts.shape)
        return keras.KerasTensor(shape, "int32", ragged=True)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor arguments as a dict, for `from_config`."""
        return {
            **super().get_config(),
            "alphabet": self.alphabet,
            "oov_buckets": self.oov_buckets,
            "max_words": self.max_words,
            "split": self.split,
        }
