"""EqualWords: the words that the query and the title of a pair share."""

from typing import NamedTuple

import tensorflow as tf

from keras_lstm_dssm.ranker.overlap_words import MAX_WORDS


class EqualWords(NamedTuple):
    """Holds which words of the query and the title of a pair are equal.

    Attributes:
        equal: Whether word i of the query is word j of the title, bool
            `[pairs, query words, title words]`.
        in_query: Whether the query has a word i, `[pairs, query words]`.
        in_title: Whether the title has a word j, `[pairs, title words]`.
    """

    equal: tf.Tensor
    in_query: tf.Tensor
    in_title: tf.Tensor

    @classmethod
    def of(cls, query: tf.Tensor, title: tf.Tensor) -> "EqualWords":
        """Compares ids; see `PairedIds`."""
        equal = tf.equal(query[:, :, tf.newaxis], title[:, tf.newaxis])
        return cls(equal, query >= 0, title >= 0)

    @property
    def shared(self) -> tf.Tensor:
        """Whether the title has word i of the query."""
        return tf.reduce_any(self.equal, axis=2)

    @property
    def query_length(self) -> tf.Tensor:
        """The number of words of the query, float32 `[pairs]`."""
        return tf.reduce_sum(tf.cast(self.in_query, tf.float32), axis=1)

    @property
    def share(self) -> tf.Tensor:
        """The share of the query's words that the title has."""
        shared = tf.reduce_sum(tf.cast(self.shared, tf.float32), axis=1)
        return tf.math.divide_no_nan(shared, self.query_length)


def order_features(equal: EqualWords) -> dict[str, tf.Tensor]:
    """Returns the features of positions and of the order of words."""
    pairs, length, width = tf.unstack(tf.shape(equal.equal))

    def extend(
        word: tf.Tensor, run: tf.Tensor, longest: tf.Tensor
    ) -> tuple[tf.Tensor, ...]:
        """Runs that end at a word of the query and each word of the title."""
        before = tf.pad(run[:, :-1], [[0, 0], [1, 0]])
        run = tf.where(equal.equal[:, word], before + 1, 0.0)
        longest = tf.maximum(longest, tf.reduce_max(run, axis=1))
        return word + 1, run, longest

    start = [0, tf.zeros([pairs, width]), tf.zeros([pairs])]
    *_, longest = tf.while_loop(lambda word, *_: word < length, extend, start)
    neighbours = tf.reduce_any(
        equal.equal[:, :-1, :-1] & equal.equal[:, 1:, 1:], axis=2
    )
    number_of_pairs = tf.maximum(equal.query_length - 1, 0)
    in_order = tf.reduce_sum(tf.cast(neighbours, tf.float32), axis=1)
    place = tf.range(width, dtype=tf.int32)
    at = tf.reduce_any(equal.equal, axis=1)
    last = tf.reduce_max(tf.where(at, place, -1), axis=1)
    first = tf.reduce_min(tf.where(at, place, MAX_WORDS), axis=1)
    ending = tf.cast(tf.maximum(equal.query_length - 1, 0), tf.int32)
    return {
        "longest_run": longest,
        "neighbours": tf.math.divide_no_nan(in_order, number_of_pairs),
        "first_position": _float(tf.where(last < 0, -1, first)),
        "last_position": _float(last),
        "first_shared": _float(equal.shared[:, 0]),
        "last_shared": _float(tf.gather(equal.shared, ending, batch_dims=1)),
    }


def number_features(
    distinct: tf.Tensor, query: tf.Tensor, equal: EqualWords
) -> dict[str, tf.Tensor]:
    """Returns the features of numbers such as 12.

    Args:
        distinct: See `PairedIds`.
        query: See `PairedIds`.
        equal: Which words are equal.
    """
    is_number = tf.strings.regex_full_match(distinct, r"\pN+")
    numbers = gather_of_words(is_number, query) & equal.in_query
    return {
        "numbers_shared": tf.reduce_sum(_float(numbers & equal.shared), 1),
        "numbers": tf.reduce_sum(_float(numbers), axis=1),
    }


def _float(values: tf.Tensor) -> tf.Tensor:
    return tf.cast(values, tf.float32)


def gather_of_words(values: tf.Tensor, ids: tf.Tensor) -> tf.Tensor:
    """Gathers the values of words; those of padding have no meaning."""
    # Without any word there is no value to gather.
    values = tf.pad(values, [[0, 1]])
    return tf.gather(values, tf.maximum(ids, 0))
