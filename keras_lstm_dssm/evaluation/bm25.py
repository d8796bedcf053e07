"""Ranks by BM25, and defines the tokenizers of all baselines."""

import dataclasses
import functools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from typing import Any

import numpy as np

from keras_lstm_dssm.errors import InputError, import_optional
from keras_lstm_dssm.evaluation.runs import kth_largest
from keras_lstm_dssm.evaluation.systems import CorpusSystem, Scores
from keras_lstm_dssm.settings import fields
from lstm_dssm_client.bm25 import Postings
from lstm_dssm_client.words import split_words

Tokenizer = Callable[[str], list[str]]
"""Function from a string to its words. It must be hashable and deterministic,
because results are cached."""

STOP_WORDS = frozenset(
    "a an and are as at be but by for if in into is it no not of on or such"
    " that the their then there these they this to was will with".split()
)
"""The 33 English stop words of Lucene's `EnglishAnalyzer`."""


def space_separated(text: str) -> list[str]:
    """Splits at white space, as an encoder with `split="space"` does."""
    return split_words(text, "space")


def alphanumeric(text: str) -> list[str]:
    """Splits into runs of letters, digits and marks."""
    return split_words(text, "alphanumeric")


def stemmed(text: str) -> list[str]:
    """Stems English words (Porter2) and leaves out `STOP_WORDS`."""
    return [english_stem(w) for w in alphanumeric(text) if w not in STOP_WORDS]


@functools.lru_cache(2**18)  # the stemmer is slow, and words repeat
def english_stem(word: str) -> str:
    """Returns the stem of a normalised word by Porter2 (Snowball's English)."""
    # https://snowballstem.org/algorithms/english/stemmer.html
    return _stemmer().stemWord(word)


@functools.cache
def _stemmer() -> Any:
    # `snowballstemmer.stemmer` may use PyStemmer, whose stems may differ.
    module = import_optional("snowballstemmer.english_stemmer", "baselines")
    return module.EnglishStemmer()


def stemmer_version() -> str:
    """Returns the name and the version of the English stemmer."""
    return f"snowballstemmer {metadata.version('snowballstemmer')}"


TOKENIZERS: dict[str, Tokenizer] = dict(
    zip(
        fields.TOKENIZERS, (space_separated, alphanumeric, stemmed), strict=True
    )
)
"""Name -> tokenizer. `"space"` and `"alphanumeric"` are also values of the
argument `split` of encoders."""


class TokenizedTitles:
    """Splits titles into words: `ids[i]` lists the ids of title i's words."""

    def __init__(
        self,
        titles: Iterable[str],
        tokenizer: Tokenizer,
        vocabulary: Mapping[str, int] | None = None,  # default: all words
    ) -> None:
        words_of_titles = map(tokenizer, titles)
        if vocabulary is None:
            word_ids: dict[str, int] = {}
            self.ids = [
                [word_ids.setdefault(w, len(word_ids)) for w in words]
                for words in words_of_titles
            ]
            vocabulary = word_ids
        else:
            self.ids = [
                [vocabulary[w] for w in words if w in vocabulary]
                for words in words_of_titles
            ]
        self.vocabulary = vocabulary

    @functools.cached_property
    def counts(self) -> Any:
        """Word counts, a float32 sparse matrix `[titles, vocabulary]`."""
        return count_matrix(self.ids, len(self.vocabulary))


def count_matrix(lists: Sequence[Sequence[int]], size: int) -> Any:
    """Counts ids (below `size`) in each list: float32 CSR `[lists, size]`."""
    from scipy import sparse

    # The indices are int32, as k-means of scikit-learn 1.7 requires.
    rows = np.repeat(np.arange(len(lists), dtype=np.int32), [*map(len, lists)])
    columns = np.array([number for ids in lists for number in ids], np.int32)
    ones = np.ones(len(columns), np.float32)
    return sparse.csr_array((ones, (rows, columns)), (len(lists), size))


@dataclasses.dataclass(frozen=True, eq=False)
class FieldTexts:
    """The fields of titles, such as brand and colour, for BM25F.

    A word that occurs tf times in a field of weight w counts w * tf times.
    Source: Robertson, Zaragoza and Taylor 2004, "Simple BM25 Extension to
    Multiple Weighted Fields".
    """

    weights: tuple[float, ...]  # a weight above 0 for each field
    texts: Mapping[str, tuple[str, ...]]  # title -> the text of each field


@functools.lru_cache(2)
def cached_titles(
    titles: tuple[str, ...], tokenizer: Tokenizer
) -> TokenizedTitles:
    """Tokenizes titles, and caches the last two results."""
    return TokenizedTitles(titles, tokenizer)


@functools.lru_cache(1)
def field_counts(
    titles: tuple[str, ...], tokenizer: Tokenizer, fields: FieldTexts
) -> tuple[Mapping[str, int], Any]:
    """Returns each word's column, and the weighted counts `[titles, words]`."""
    by_field = zip(*(fields.texts[title] for title in titles), strict=True)
    texts = [text for field_texts in by_field for text in field_texts]
    tokenized = TokenizedTitles(texts, tokenizer)
    first_rows = range(0, len(texts), len(titles))
    blocks = (
        weight * tokenized.counts[row : row + len(titles)]
        for row, weight in zip(first_rows, fields.weights, strict=True)
    )
    return tokenized.vocabulary, functools.reduce(operator.add, blocks)


def training_titles(
    titles: Sequence[str], tokenizer: Tokenizer
) -> TokenizedTitles:
    """Tokenizes the titles that a system is trained on, and checks them."""
    expected = "expected a sequence of titles with at least one word"
    if isinstance(titles, str) or not isinstance(titles, Sequence):
        raise InputError(f"found {titles!r:.40}, {expected}")
    for number, title in enumerate(titles, 1):
        if not isinstance(title, str):
            raise InputError(
                f"title {number}: found {title!r:.40}, expected a str"
            )
    tokenized = TokenizedTitles(titles, tokenizer)
    if not tokenized.vocabulary:
        raise InputError(f"found no word in {len(titles)} titles, {expected}")
    return tokenized


def not_fitted(system: str) -> InputError:
    """Returns the error of a system that is used before `fit`."""
    return InputError(f"{system} is not trained: call fit(titles) first")


class BM25System(CorpusSystem):
    """Ranks by BM25 with Lucene's IDF, log(1 + (N - df + 0.5)/(df + 0.5)).

    `rerank` and `retrieve` compute the IDF over the whole corpus. `retrieve`
    returns only documents that share a word with the query.

    Args:
        k1: Saturation of the term frequency; a larger k1 saturates later.
        b: Influence of the title's length, from 0 (none) to 1.
        tokenizer: Text -> words, a value of `TOKENIZERS` or any hashable
            function.
        query_tokenizer: The tokenizer of queries. Default: `tokenizer`.
        fields: The fields of the titles, with weights. Default: a title is one
            text.

    Reference: Kamphuis et al. 2020, "Which BM25 do you mean?", for the
        variants; Lù 2024, "BM25S", for precomputed scores.

    Example:
    >>> BM25System().retrieve({"q": "cat"}, {"a": "a cat", "b": "dog"}, 10)
    {'q': {'a': 0.27725887298583984}}
    """

    def __init__(
        self,
        k1: float = 1.2,
        b: float = 0.75,
        tokenizer: Tokenizer = space_separated,
        query_tokenizer: Tokenizer | None = None,
        fields: FieldTexts | None = None,
    ) -> None:
        self.k1 = k1
        self.b = b
        self.tokenizer = tokenizer
        self.query_tokenizer = query_tokenizer or tokenizer
        self.fields = fields

    def scores(
        self, queries: Sequence[str], titles: tuple[str, ...]
    ) -> Iterator[Scores]:
        """Yields the BM25 scores of all titles for each query."""
        postings = _postings(
            titles, self.tokenizer, self.k1, self.b, self.fields
        )
        for query in queries:
            scores = postings.sums(self.query_tokenizer(query))
            yield scores, np.flatnonzero(scores)


@functools.lru_cache(1)  # `rerank` and `retrieve` share the postings
def _postings(
    titles: tuple[str, ...],
    tokenizer: Tokenizer,
    k1: float,
    b: float,
    fields: FieldTexts | None,
) -> Postings:
    if fields is None:
        tokenized = cached_titles(titles, tokenizer)
        vocabulary, counts = tokenized.vocabulary, tokenized.counts
    else:
        vocabulary, counts = field_counts(titles, tokenizer, fields)
    return Postings.from_counts(vocabulary, counts, k1, b)


def bm25_neighbours(
    texts: Sequence[str], titles: Sequence[str], k: int
) -> Iterator[np.ndarray]:
    """Yields each text's k best titles, among titles with a word of it."""
    system = BM25System(tokenizer=alphanumeric)
    for scores, matching in system.scores(texts, tuple(titles)):
        assert matching is not None
        matching_scores = scores[matching]
        best = matching_scores >= kth_largest(matching_scores, k)
        order = np.argsort(-matching_scores[best], kind="stable")
        yield matching[best][order[:k]]
