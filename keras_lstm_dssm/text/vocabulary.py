"""A vocabulary of words with ids: lookup, batches of ids, and word counts."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.errors import InputError, check_at_least
from keras_lstm_dssm.text.many_texts import Fields, HashedTextCache
from keras_lstm_dssm.text.word_hashing import (
    EMPTY_TEXT,
    WordBatch,
    distinct_texts,
    normalize,
    normalize_and_split,
    pad_rows,
    split_without_stems,
)
from lstm_dssm_client.signatures import as_bytes

UNKNOWN = 0
"""The id of all words outside the vocabulary, and of an empty text."""

_TEXTS_AT_ONCE = 10_000


class Vocabulary(tf.Module):
    """Maps words to ids, in the TensorFlow graph.

    The first word has the id 1, and unknown words have the id 0. The vocabulary
    works eagerly, in `Dataset.map`, in a `tf.function` and in a SavedModel. The
    root object of a SavedModel must have the vocabulary as an attribute.

    Args:
        words: Distinct words, normalised by `normalize_texts` with the same
            `split`; `vocabulary_of` makes such a list.
        split: Rule that separates words, see `normalize_texts`. Default
            `"alphanumeric"`.

    Raises:
        InputError: There are no words, a word occurs twice, or a word is not
            normalised.

    Example:
    >>> batch = Vocabulary(["hat", "red"]).distinct(tf.constant(["Red hat!"]))
    >>> tf.gather(batch.trigrams, batch.words).numpy().tolist()
    [[2, 1]]
    """

    def __init__(
        self, words: Sequence[str], split: str = "alphanumeric"
    ) -> None:
        super().__init__()
        # The check does not stem the words: a stem may change if it is stemmed
        # again, as in "focusing" -> "focus" -> "focu".
        _check(words, split_without_stems(split))
        self.split = split
        self._size = len(words)
        # One string, because `tf.Module` would search a list for variables.
        self._joined = " ".join(words)
        # `keras.layers.StringLookup` would pad each word to the length of
        # the longest word, and lose NULs at the end of a word.
        self._table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(
                tf.constant(as_bytes(words)),
                tf.range(1, self._size + 1, dtype=tf.int64),
            ),
            default_value=UNKNOWN,
        )

    def __len__(self) -> int:
        return self._size

    @property
    def words(self) -> list[str]:
        """The words; the word with id i is `words[i - 1]`."""
        return self._joined.split(" ")

    @property
    def joined(self) -> str:
        """All words in one string, separated by single spaces."""
        return self._joined

    def ids(self, words: tf.Tensor) -> tf.Tensor:
        """Returns the ids of normalised words, int32 of the same shape."""
        return tf.cast(self._table.lookup(words), tf.int32)

    def distinct(
        self, texts: tf.Tensor, max_words: int | None = None
    ) -> WordBatch:
        """Converts texts to a `WordBatch` of vocabulary ids.

        `WordBatch.trigrams` has the distinct ids of words, and
        `WordBatch.words` has indices in `trigrams`. All unknown words have the
        id 0, but texts with different unknown words count as distinct texts.

        Args:
            texts: String tensor `[batch]`, which may be empty.
            max_words: Number of words that are read from the start of each
                text. Default `None`: all.
        """
        text_words, text_index = distinct_texts(texts, max_words, self.split)
        ids, word_indices = tf.unique(self.ids(text_words.flat_values))
        indices = tf.range(tf.size(ids))
        return WordBatch(
            ids,
            indices,
            indices,
            pad_rows(text_words.with_flat_values(word_indices)),
            tf.cast(text_words.row_lengths(), tf.int32),
            text_index,
        )


class VocabularyCache(HashedTextCache):
    """Converts texts as `Vocabulary.distinct` does, and caches the words."""

    def __init__(
        self, vocabulary: Vocabulary, max_words: int | None, **kwargs: Any
    ) -> None:
        super().__init__(0, max_words, vocabulary.split, **kwargs)
        self._vocabulary = vocabulary

    @cached_property
    def _ids(self) -> dict[bytes, int]:
        words = self._vocabulary.joined.encode().split(b" ")
        return {word: word_id for word_id, word in enumerate(words, 1)}

    def _uncached(self, texts: tf.Tensor) -> WordBatch:
        return self._vocabulary.distinct(texts, self.max_words)

    def _word_ids(self, words: list[bytes]) -> list[int]:
        return [self._ids.get(word, UNKNOWN) for word in words]

    def _trigrams(self, words: np.ndarray) -> Fields:
        indices = np.arange(len(words), dtype=np.int32)
        return words, indices, indices, indices


def _check(words: Any, split: str) -> None:
    """Raises `InputError` unless the words are distinct and normalised."""
    normal = normalize(words, split)
    if not normal:
        raise InputError(
            "the vocabulary has no words, expected at least 1; "
            "vocabulary_of(texts) makes one"
        )
    for index, (word, normal_word) in enumerate(
        zip(words, normal, strict=True)
    ):
        if word == EMPTY_TEXT:
            raise InputError(
                f"vocabulary[{index}] is {word!r}, which stands for an empty "
                "text: leave it out"
            )
        if word != normal_word or " " in word:
            raise InputError(
                f"vocabulary[{index}] is {word!r:.60}, which split={split!r} "
                f"reads as {normal_word!r:.60}; expected normalised words, as "
                "vocabulary_of(texts) lists them"
            )
    ((word, count),) = Counter(normal).most_common(1)
    if count > 1:
        raise InputError(
            f"the vocabulary has {word!r:.60} {count} times, expected "
            "different words"
        )


def vocabulary_of(
    texts: Iterable[str | bytes],
    min_count: int = 1,
    max_words: int | None = None,
    split: str = "alphanumeric",
) -> list[str]:
    """Lists the words of texts, the most frequent first.

    Words with equal counts are sorted by code points, so the result does not
    depend on the order of the texts.

    Args:
        texts: Any iterable of `str` or `bytes`.
        min_count: Least number of occurrences of a word in all texts. Default
            1.
        max_words: Largest number of words to list. Default `None`: all.
        split: Rule that separates words, see `normalize_texts`. Default
            `"alphanumeric"`.

    Returns:
        Normalised words, at least one.

    Raises:
        InputError: No word occurs `min_count` times, or an argument is below 1.

    Example:
    >>> vocabulary_of(["red hat", "Blue hat"])
    ['hat', 'blue', 'red']
    """
    check_at_least(1, min_count=min_count)
    check_at_least(1, optional=True, max_words=max_words)
    counts: Counter[bytes] = Counter()
    for words in split_in_batches(texts, split):
        counts.update(words.flat_values.numpy().tolist())
    del counts[EMPTY_TEXT.encode()]
    # Sorting UTF-8 by bytes gives the order of code points.
    frequent = sorted(
        (-count, word) for word, count in counts.items() if count >= min_count
    )
    if not frequent:
        raise InputError(
            f"no word occurs min_count={min_count} times in the texts; give "
            "other texts or a lower min_count"
        )
    return [word.decode() for _, word in frequent[:max_words]]


def split_in_batches(
    texts: Iterable[str | bytes], split: str
) -> Iterator[tf.RaggedTensor]:
    """Yields the words of 10,000 texts at a time, ragged `[texts, (words)]`."""
    encoded = as_bytes(texts)
    for start in range(0, len(encoded), _TEXTS_AT_ONCE):
        batch = tf.constant(encoded[start : start + _TEXTS_AT_ONCE])
        yield normalize_and_split(batch, None, split)
