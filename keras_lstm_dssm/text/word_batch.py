"""A batch of texts in which every distinct text, word and trigram is once."""

from typing import NamedTuple

import tensorflow as tf

from keras_lstm_dssm.text.word_hashing import split_words, trigram_ids


class WordBatch(NamedTuple):
    """What the encoders compute with: integers only, nothing twice.

    A batch of 1,024 titles holds some 12,000 words but 3,000 distinct ones,
    and fewer distinct trigrams still. Each is looked up, and its gradient
    summed, once. All fields are int32.

    Attributes:
        trigrams: `[r]`, the ids of the distinct trigrams.
        trigram_index: `[m]`, for each trigram of each distinct word, its
            place in `trigrams`.
        word_index: `[m]`, the distinct word each of them belongs to,
            ascending.
        words: `[u, time]`, the distinct word at each place of each distinct
            text; 0 past the end of the text. The longest text comes first,
            which lets a recurrence leave out the padding.
        lengths: `[u]`, words in each distinct text, descending, at least 1.
        text_index: `[batch]`, which distinct text each row is.
    """

    trigrams: tf.Tensor
    trigram_index: tf.Tensor
    word_index: tf.Tensor
    words: tf.Tensor
    lengths: tf.Tensor
    text_index: tf.Tensor

    def flat(self) -> tuple[tf.Tensor, tf.Tensor]:
        """The words of one text after the other, and whose they are.

        Returns:
            `(words, texts)`, both int32 `[w]`: the word's place, and the
            ascending place of its text.
        """
        real = tf.sequence_mask(self.lengths, tf.shape(self.words)[1])
        texts = tf.repeat(tf.range(tf.size(self.lengths)), self.lengths)
        return tf.boolean_mask(self.words, real), texts


def distinct_words(
    texts: tf.Tensor,
    oov_buckets: int = 0,
    max_words: int | None = None,
    split: str = "space",
) -> WordBatch:
    """Turns texts into a `WordBatch`.

    Runs in `tf.data`, in a `tf.function` and in an exported graph alike.

    Args:
        texts: String tensor `[batch]`; a batch of none is allowed.
        oov_buckets: See `trigram_ids`.
        max_words: See `split_words`.
        split: See `split_words`.

    Example:
    >>> batch = distinct_words(tf.constant(["a b", "b", "a b"]))
    >>> batch.words.numpy().tolist(), batch.text_index.numpy().tolist()
    ([[0, 1], [1, 0]], [0, 1, 0])
    """
    distinct_texts, text_index = tf.unique(texts)
    every = split_words(distinct_texts, max_words, split)
    order = tf.argsort(every.row_lengths(), direction="DESCENDING", stable=True)
    every = tf.gather(every, order)
    distinct, places = tf.unique(every.flat_values)
    ids, word_index = trigram_ids(distinct, oov_buckets)
    trigrams, trigram_index = tf.unique(ids)
    words = every.with_flat_values(places).to_tensor()
    # At least one time step: a loop over none of them has no state to give.
    missing = tf.maximum(1 - tf.shape(words)[1], 0)
    words = tf.pad(words, [[0, 0], [0, missing]])
    return WordBatch(
        trigrams,
        trigram_index,
        word_index,
        words,
        tf.cast(every.row_lengths(), tf.int32),
        tf.gather(tf.math.invert_permutation(order), text_index),
    )
