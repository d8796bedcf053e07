"""LetterTrigrams: the word-hashing layer, strings in, trigram ids out."""

from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.private_api import accept_any_inputs
from keras_lstm_dssm.registration import register
from keras_lstm_dssm.text import (
    TRIGRAMS,
    WORD_SPLITS,
    WordBatch,
    as_strings,
    distinct_words,
    split_words,
    trigram_ids,
)


@register
class LetterTrigrams(keras.layers.Layer):
    """Hashes each word of each text into its letter trigrams.

    Implements `l(t) = W_h x(t)` of Palangi et al. 2016, eq. (1): the
    operator is fixed, has no parameters and needs no vocabulary. The ids
    are the same when the layer is called directly, in `Dataset.map` before
    or after batching, in a `tf.function` and in a saved model.

    Args:
        alphabet: `"ascii"`, the paper's: `#`, a to z, 0 to 9.
        oov_buckets: Rows beyond the 50,653 exact ones, for trigrams with a
            letter outside the alphabet. 0, as in the paper, folds such
            letters onto `#`; a few thousand let other scripts work too.
        max_words: Words read of each text, the first ones; `None` for all.
            The bound keeps one very long text from slowing its whole batch.
        split: Where words end, see `split_words`: `"space"`, the paper's, or
            `"alphanumeric"`.

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
        if max_words is not None and max_words < 1:
            raise InputError(
                f"max_words must be at least 1 or None, not {max_words}"
            )
        if split not in WORD_SPLITS:
            raise InputError(
                f"split must be one of {', '.join(WORD_SPLITS)}, not {split!r}"
            )
        self.alphabet = alphabet
        self.oov_buckets = oov_buckets
        self.max_words = max_words
        self.split = split
        # Strings must reach `call` untouched, and XLA has no string ops.
        accept_any_inputs(self)
        self.supports_jit = False
        self.built = True

    @property
    def size(self) -> int:
        """Number of different ids, the rows of an embedding table."""
        return TRIGRAMS + self.oov_buckets

    def call(self, texts: Any) -> tf.RaggedTensor:
        """Lists trigram ids by text and word."""
        words = split_words(as_strings(texts), self.max_words, self.split)
        ids, word = trigram_ids(words.flat_values, self.oov_buckets)
        count = tf.cast(tf.size(words.flat_values), tf.int64)
        return words.with_flat_values(
            tf.RaggedTensor.from_value_rowids(
                ids, tf.cast(word, tf.int64), nrows=count
            )
        )

    def distinct(self, texts: Any) -> WordBatch:
        """Hashes texts into a `WordBatch`, each distinct word once."""
        return distinct_words(
            as_strings(texts), self.oov_buckets, self.max_words, self.split
        )

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "alphabet": self.alphabet,
            "oov_buckets": self.oov_buckets,
            "max_words": self.max_words,
            "split": self.split,
        }
