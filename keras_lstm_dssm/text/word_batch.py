"""`WordBatch`, a batch of texts as ids of distinct texts, words and trigrams.

A single short text is hashed with fewer operations, for a server's queries.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import tensorflow as tf

from keras_lstm_dssm.text.word_hashing import (
    normalize_single_text,
    normalize_texts,
    separate_words,
    trigram_ids,
    trigrams_of_letters,
)

F = TypeVar("F", bound=Callable[..., Any])


def traced_once(function: F) -> F:
    """Decorates a function of texts, to trace it once for all graphs.

    Every dataset and every model hashes its texts in a graph of its own, and
    tracing the hashing takes longer than hashing a small batch. The first
    argument is a string tensor `[batch]`, the others are hashable.
    """

    @functools.cache
    def traced(*arguments: Any, **named: Any) -> Any:
        return tf.function(
            lambda texts: function(texts, *arguments, **named),
            input_signature=[tf.TensorSpec([None], tf.string)],
            autograph=False,
        )

    @functools.wraps(function)
    def call(texts: tf.Tensor, *arguments: Any, **named: Any) -> Any:
        if tf.executing_eagerly():
            return function(texts, *arguments, **named)
        return traced(*arguments, **named)(texts)

    return cast(F, call)


class WordBatch(NamedTuple):
    """Holds the ids of a batch, each distinct text, word and trigram once.

    A batch of 1,024 titles holds some 12,000 words but only 3,000 distinct
    ones, and fewer distinct trigrams still. Each is looked up once, and its
    gradient summed once. Two texts are distinct if their normalised words
    differ (see `normalize_texts`). All fields but `untrained` are int32.

    Attributes:
        trigrams: `[r]`, the ids of the distinct trigrams. In the batches of
            `VocabularyVectors`, the ids of the distinct words, as if each
            word were one trigram.
        trigram_index: `[m]`, for each trigram of each distinct word, its
            index in `trigrams`.
        word_index: `[m]`, for each of these trigrams, the index of its
            distinct word, ascending.
        words: `[u, time]`, for each distinct text the indices of its words;
            0 past the end of the text. The longest text comes first, so
            that a recurrence can leave out the padding.
        lengths: `[u]`, number of words in each distinct text, descending, at
            least 1.
        text_index: `[batch]`, the index of the distinct text of each row.
        trigram_order: `[m]`, the order that sorts `trigram_index`, which a
            gradient needs; or `None`: it is sorted then.
        untrained: Float `[u, width]`, the untrained columns of the vectors
            that one encoder gives these texts (see `UntrainedColumnCache`); or
            `None`: the encoder computes them.

    Example:
    >>> batch = dssm.LetterTrigrams().distinct(["bolt", "hex bolt", "Bolt"])
    >>> batch.lengths.numpy().tolist(), batch.text_index.numpy().tolist()
    ([2, 1], [1, 0, 1])
    """

    trigrams: tf.Tensor
    trigram_index: tf.Tensor
    word_index: tf.Tensor
    words: tf.Tensor
    lengths: tf.Tensor
    text_index: tf.Tensor
    trigram_order: tf.Tensor | None = None
    untrained: tf.Tensor | None = None

    @property
    def text_count(self) -> tf.Tensor:
        """Number of distinct texts."""
        return tf.size(self.lengths)

    def flat(self) -> tuple[tf.Tensor, tf.Tensor]:
        """Lists the words of all distinct texts, one text after the other.

        Returns:
            `(words, texts)`, both int32 `[w]`: the index of each word, and
            the index of its text, ascending.
        """
        real = tf.sequence_mask(self.lengths, tf.shape(self.words)[1])
        places = tf.where(real)
        texts, _ = tf.unstack(tf.cast(places, tf.int32), axis=1)
        return tf.gather_nd(self.words, places), texts


@traced_once
def distinct_words(
    texts: tf.Tensor,
    oov_buckets: int = 0,
    max_words: int | None = None,
    split: str = "space",
) -> WordBatch:
    """Hashes strings `[batch]` into a `WordBatch`.

    Gives the same result in `tf.data`, in a `tf.function` and in an exported
    graph.
    """
    text_words, text_index = distinct_texts(texts, max_words, split)
    distinct, word_indices = tf.unique(text_words.flat_values)
    ids, word_index = trigram_ids(distinct, oov_buckets)
    trigrams, trigram_index = tf.unique(ids)
    return WordBatch(
        trigrams,
        trigram_index,
        word_index,
        pad_rows(text_words.with_flat_values(word_indices)),
        tf.cast(text_words.row_lengths(), tf.int32),
        text_index,
    )


@traced_once
def distinct_texts(
    texts: tf.Tensor, max_words: int | None, split: str
) -> tuple[tf.RaggedTensor, tf.Tensor]:
    """Splits each distinct text into its normalised words.

    Returns ragged strings `[texts, (words)]`, the longest text first, and for
    each row of the batch the index of its text, int32 `[batch]`.
    """
    # Duplicates are removed by bytes first, which is cheap; then by words.
    distinct_bytes, bytes_index = tf.unique(texts)
    normal = normalize_texts(distinct_bytes, max_words, split)
    distinct, normal_index = tf.unique(normal)
    words = separate_words(distinct)
    lengths = words.row_lengths()
    if max_words is not None:
        lengths = tf.minimum(lengths, max_words)
    order = tf.argsort(lengths, direction="DESCENDING", stable=True)
    text_index = tf.gather(
        tf.math.invert_permutation(order), tf.gather(normal_index, bytes_index)
    )
    # The words are cut off and put in order by one gather of strings.
    starts = tf.gather(words.row_starts(), order)
    places = tf.ragged.range(starts, starts + tf.gather(lengths, order))
    text_words = tf.gather(words.values, places.values)
    return places.with_values(text_words), text_index


@traced_once
def text_fingerprints(
    texts: tf.Tensor, max_words: int | None, split: str
) -> tf.Tensor:
    """Computes a number for each text, by which other processes know it.

    Returns int64 `[batch]`, equal for texts that `distinct_texts` takes for
    one. Among a million others, a text has its number to itself with a
    probability of 1 - 1e-13.
    """
    distinct_bytes, index = tf.unique(texts)
    normal = normalize_texts(distinct_bytes, max_words, split)
    return tf.gather(tf.strings.to_hash_bucket_fast(normal, 2**63 - 1), index)


def pad_rows(rows: tf.RaggedTensor) -> tf.Tensor:
    """Pads rows of numbers or of vectors with 0, to at least one time step.

    A loop over no time steps has no last state.
    """
    padded = rows.to_tensor()
    missing = tf.maximum(1 - tf.shape(padded)[1], 0)
    inner = [[0, 0]] * (padded.shape.rank - 2)
    return tf.pad(padded, [[0, 0], [0, missing], *inner])


_SPACE = ord(" ")

_MOST_BYTES = 127
"""Maximum size of a short text.

Of each byte the normalisation makes 6 letters at most (U+FDFA, of 3 bytes,
becomes 4 words of 15 letters), and so no word of more than `MAX_LETTERS`. A
text of n bytes has no more than 4/3 n + 1 words.
"""


def is_single_short_text(texts: tf.Tensor, max_words: int | None) -> tf.Tensor:
    """Returns whether a batch is one text that `hash_single_text` can hash.

    Neither `max_words` nor `MAX_LETTERS` can cut such a text.
    """
    limit = (
        _MOST_BYTES
        if max_words is None
        else min(_MOST_BYTES, 3 * (max_words - 1) // 4)
    )
    lengths = tf.strings.length(texts)
    return tf.equal(tf.size(texts), 1) & tf.reduce_all(lengths <= limit)


def hash_single_text(
    text: tf.Tensor, oov_buckets: int = 0, split: str = "space"
) -> WordBatch:
    """Hashes one short text into a `WordBatch`, with a third of the operations.

    Most of the operations of `distinct_words` take less than a microsecond,
    but a graph takes as long for a text as it has operations. Here a word
    that occurs twice is looked up twice; the vectors are the same. The first
    dimension of `words` is 1 in the graph, too, by which layers know that they
    can leave out the packing.
    """
    normal = normalize_single_text(text, split)
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
