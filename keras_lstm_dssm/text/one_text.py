"""Hashes one short text with few operations, for a server's single queries."""

import tensorflow as tf

from keras_lstm_dssm.text.word_batch import WordBatch
from keras_lstm_dssm.text.word_hashing import (
    normalize_texts,
    trigrams_of_letters,
)

_SPACE = ord(" ")

_MOST_BYTES = 127
"""Maximum size of a short text.

Of each byte the normalisation makes 6 letters at most (U+FDFA, of 3 bytes,
becomes 18), and so no word of more than `MAX_LETTERS`. A text of n bytes has
no more than n + 1 words.
"""


def is_one_short_text(texts: tf.Tensor, max_words: int | None) -> tf.Tensor:
    """Returns whether `words_of_one_text` can hash a batch.

    Args:
        texts: String tensor `[batch]`.
        max_words: Number of words kept of each text; see `split_words`.

    Returns:
        A bool scalar: whether there is one text, which neither `max_words`
        nor `MAX_LETTERS` can cut.

    Example:
    >>> bool(is_one_short_text(tf.constant(["hex bolt"]), max_words=128))
    True
    >>> bool(is_one_short_text(tf.constant(["bolt", "nut"]), max_words=128))
    False
    """
    limit = (
        _MOST_BYTES if max_words is None else min(_MOST_BYTES, max_words - 1)
    )
    lengths = tf.strings.length(texts)
    return tf.equal(tf.size(texts), 1) & tf.reduce_all(lengths <= limit)


def words_of_one_text(
    text: tf.Tensor, oov_buckets: int = 0, split: str = "space"
) -> WordBatch:
    """Hashes one text into a `WordBatch`, with a third of the operations.

    Most of the operations of `distinct_words` take less than a microsecond,
    but a graph takes as long for a text as it has operations. Here a word
    that occurs twice is looked up twice; the vectors are the same.

    Args:
        text: String tensor `[1]` for which `is_one_short_text` is true.
        oov_buckets: Number of ids for trigrams of other letters, default 0.
        split: The rule that separates words; see `normalize_texts`.

    Returns:
        The words in order. The first dimension of `words` is 1 in the graph,
        too, by which layers know that they can leave out the packing.

    Example:
    >>> words_of_one_text(tf.constant(["a b a"])).words.numpy().tolist()
    [[0, 1, 2]]
    """
    normal = normalize_texts(text, split=split)
    points = tf.strings.unicode_decode(normal, "UTF-8").flat_values
    is_space = tf.equal(points, _SPACE)
    letters = tf.where(~is_space)[:, 0]
    word = tf.gather(tf.cumsum(tf.cast(is_space, tf.int32)), letters)
    ids = trigrams_of_letters(tf.gather(points, letters), word, oov_buckets)
    # TensorFlow sums the rows of `tf.unique` without gathering them. If this
    # graph gathered rows of a table and another one in the same model read
    # the table as a whole, each such read would copy it.
    trigrams, trigram_index = tf.unique(ids)
    count = word[-1] + 1
    return WordBatch(
        trigrams,
        trigram_index,
        word,
        tf.range(count)[tf.newaxis],
        count[tf.newaxis],
        tf.constant([0]),
    )
