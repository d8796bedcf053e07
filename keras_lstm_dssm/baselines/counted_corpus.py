"""Corpus: titles as the ids of their words, counted once for all systems."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from keras_lstm_dssm.baselines.tokenizers import Tokenizer
from keras_lstm_dssm.errors import InputError, import_optional


class Corpus:
    """Titles split into words, and their vocabulary.

    Args:
        titles: The titles.
        tokenizer: String -> words.
        vocabulary: Word -> id, the only words to keep; `None` collects those
            of the titles.

    Attributes:
        vocabulary: Word -> id; a collected one in order of occurrence.
        ids: The word ids of each title.

    Example:
    >>> Corpus(["red hat", "blue hat"], words).ids
    [[0, 1], [2, 1]]
    """

    def __init__(
        self,
        titles: Sequence[str],
        tokenizer: Tokenizer,
        vocabulary: Mapping[str, int] | None = None,
    ) -> None:
        split = map(tokenizer, titles)
        if vocabulary is None:
            found: dict[str, int] = {}
            self.ids = [
                [found.setdefault(w, len(found)) for w in title]
                for title in split
            ]
            vocabulary = found
        else:
            self.ids = [
                [vocabulary[w] for w in title if w in vocabulary]
                for title in split
            ]
        self.vocabulary = vocabulary

    @functools.cached_property
    def counts(self) -> Any:
        """The `count_matrix` of all titles."""
        return count_matrix(self.ids, len(self.vocabulary))


def count_matrix(titles: Sequence[Sequence[int]], size: int) -> Any:
    """Counts words: float32 `scipy.sparse.csr_array` `[titles, size]`.

    Each row holds each of its words once, in ascending order.

    Args:
        titles: The word ids of each title, each below `size`.
        size: Words in the vocabulary.

    Raises:
        InputError: scipy is not installed.
    """
    sparse = import_optional("scipy.sparse", "baselines")
    rows = [row for row, ids in enumerate(titles) for _ in ids]
    columns = [word for ids in titles for word in ids]
    ones = np.ones(len(columns), np.float32)
    return sparse.csr_array((ones, (rows, columns)), (len(titles), size))


@functools.lru_cache(2)
def cached_corpus(titles: tuple[str, ...], tokenizer: Tokenizer) -> Corpus:
    """Returns the `Corpus` of the same titles from the last calls, if any.

    Titles are compared, not their container, so a corpus that was changed is
    another one; comparing equal strings is far cheaper than splitting them.
    """
    return Corpus(titles, tokenizer)


def training_corpus(titles: Sequence[str], tokenizer: Tokenizer) -> Corpus:
    """Splits what a system is to learn from.

    Raises:
        InputError: Not a sequence of strings, or without a single word.
    """
    expected = "expected a sequence of titles with at least one word"
    if isinstance(titles, str) or not isinstance(titles, Sequence):
        raise InputError(f"found {titles!r:.40}, {expected}")
    for number, title in enumerate(titles, 1):
        if not isinstance(title, str):
            raise InputError(
                f"title {number}: found {title!r:.40}, expected a str"
            )
    corpus = Corpus(titles, tokenizer)
    if not corpus.vocabulary:
        raise InputError(f"found no word in {len(titles)} titles, {expected}")
    return corpus


def not_fitted(system: str) -> InputError:
    """Returns the error of a system that is asked before it has learnt."""
    return InputError(f"{system} has learnt nothing yet: call fit(titles)")
