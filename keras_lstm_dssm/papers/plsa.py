"""Probabilistic latent semantic analysis by expectation maximisation (EM)."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_lstm_dssm.errors import InputError, check_at_least
from keras_lstm_dssm.evaluation.bm25 import (
    TokenizedTitles,
    Tokenizer,
    alphanumeric,
    count_matrix,
    not_fitted,
    training_titles,
)
from keras_lstm_dssm.evaluation.systems import CorpusSystem, Scores

_EM_BLOCK = 512  # about how many non-zero counts a block of titles has
_TINY = np.float32(1e-12)  # least probability: subnormal numbers are slow


def em_step(
    # n(d, w), how often word w occurs in title d: CSR matrix `[titles, words]`.
    counts: Any,
    topics: np.ndarray,  # P(w|z) for T topics z, `[words, T]`
    mixtures: np.ndarray,  # P(z|d), `[titles, T]`
    word_prior: float,  # pseudo-count of each word in each topic
    topic_prior: float,  # pseudo-count of each topic in each title
) -> np.ndarray:
    """Does a step of EM: updates `mixtures` in place, and returns new topics.

        P(z|w, d) = P(w|z) P(z|d) / P(w|d), computed before each update
        P(z|d) ~ topic_prior + sum over w of n(d, w) P(z|w, d)
        P(w|z) ~ word_prior + sum over d of n(d, w) P(z|w, d)

    Here, `~` means "proportional to". First P(z|d) is updated, then P(w|z). As
    in expectation conditional maximisation (Meng and Rubin 1993), no update
    lowers the posterior probability.
    """
    ratios = counts.copy()
    for titles, entries in _blocks(counts):
        word_counts = counts.data[entries]
        rows = topics[counts.indices[entries]]
        updated = _infer(rows, word_counts, mixtures[titles], topic_prior, 1)
        mixtures[titles] = updated
        ratios.data[entries] = word_counts / _probabilities(rows, updated)
    new = topics * (ratios.T @ mixtures) + np.float32(word_prior)
    np.maximum(new, _TINY, out=new)
    return new / new.sum(axis=0)


def fold_in(
    counts: Any, topics: np.ndarray, topic_prior: float, steps: int
) -> np.ndarray:
    """Estimates P(z|d) of titles by steps of EM that do not change P(w|z)."""
    mixtures = uniform_mixtures(counts.shape[0], topics.shape[1])
    for titles, entries in _blocks(counts):
        rows = topics[counts.indices[entries]]
        mixtures[titles] = _infer(
            rows, counts.data[entries], mixtures[titles], topic_prior, steps
        )
    return mixtures


def uniform_mixtures(titles: int, topics: int) -> np.ndarray:
    """Returns P(z|d) with equal shares of all topics, `[titles, topics]`."""
    return np.full((titles, topics), 1 / topics, np.float32)


def _blocks(counts: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields blocks of B titles that have L different words each.

    A block consists of the indices of the titles, `[B]`, and of the indices of
    their counts in `counts.data`, `[B, L]`. Titles without words are left out.
    """
    sizes = np.diff(counts.indptr)
    for size in np.unique(sizes[sizes > 0]):
        titles = np.flatnonzero(sizes == size)
        for block in np.array_split(
            titles, -(-len(titles) * size // _EM_BLOCK)
        ):
            yield block, counts.indptr[block, None] + np.arange(size)


def _infer(
    rows: np.ndarray,
    word_counts: np.ndarray,
    mixtures: np.ndarray,
    prior: float,
    steps: int,
) -> np.ndarray:
    """Improves P(z|d) `[B, T]` of a block of titles by steps of EM.

    `rows` is P(w|z) `[B, L, T]`, and `word_counts` is n(d, w) `[B, L]`.
    """
    for _ in range(steps):
        ratios = word_counts / _probabilities(rows, mixtures)
        mixtures = mixtures * (ratios[:, None] @ rows)[:, 0] + np.float32(prior)
        mixtures = np.maximum(mixtures, _TINY)
        mixtures /= mixtures.sum(axis=1, keepdims=True)
    return mixtures


def _probabilities(rows: np.ndarray, mixtures: np.ndarray) -> np.ndarray:
    """Returns P(w|d) of the words of each title, float `[B, L]`."""
    return (rows @ mixtures[:, :, None])[:, :, 0]


_BLOCK = 64  # number of queries that are scored by one matrix product


class PLSASystem(CorpusSystem):
    """Ranks by the probability of the query given a title's topics.

    log P(q|d) = sum over w in q of
        log((1 - background) sum over z of P(w|z) P(z|d) + background P(w))

    P(w|z) is the MAP estimate from titles under symmetric Dirichlet priors.
    P(z|d) of a title is estimated with P(w|z) fixed. A title without a known
    word has a uniform P(z|d). Unknown words are dropped from queries and
    titles. Retrieval ranks all titles, because a title can match a query by
    topics even if the title has no word of the query.

    Args:
        topics: T, the number of topics.
        tokenizer: Text -> words, a value of `bm25.TOKENIZERS` or any function.
        seed: Seed of the random P(w|z) that training starts from.
        iterations: Number of EM steps in training.
        word_prior: Pseudo-count of each word in each topic.
        topic_prior: Pseudo-count of each topic in each title.
        background: Weight of P(w), from 0 to 1. P(w) is the share of w among
            all words of the training titles.
        fold_in_steps: Number of EM steps that estimate P(z|d) of a title.

    Raises:
        InputError: A number is out of its range.

    Attributes:
        topics_: P(w|z), float32 `[words, T]`; set by `fit`.

    Reference: Hofmann 1999, "Probabilistic Latent Semantic Indexing", for
        the model and folding in; Chien and Wu 2008, "Adaptive Bayesian
        Latent Semantic Analysis", for the MAP estimate.

    Example:
    >>> system = PLSASystem(topics=2).fit(["red hat", "hat and coat", "hose"])
    >>> run = system.retrieve({"q": "coat"}, {"a": "hat", "b": "hose"}, 1)
    >>> list(run["q"])
    ['a']
    """

    def __init__(
        self,
        topics: int = 500,
        tokenizer: Tokenizer = alphanumeric,
        seed: int = 0,
        iterations: int = 50,
        word_prior: float = 0.01,
        topic_prior: float = 0.01,
        background: float = 0.1,
        fold_in_steps: int = 20,
    ) -> None:
        check_at_least(1, topics=topics)
        if min(word_prior, topic_prior) < 0:
            raise InputError("a prior is a pseudo-count: expected 0 or more")
        if not 0 <= background <= 1:
            raise InputError(f"background is {background}: expected 0 to 1")
        self.topics = topics
        self.tokenizer = tokenizer
        self.seed = seed
        self.iterations = iterations
        self.word_prior = word_prior
        self.topic_prior = topic_prior
        self.background = background
        self.fold_in_steps = fold_in_steps
        self.parameters = 0

    def fit(self, titles: Sequence[str]) -> "PLSASystem":
        """Estimates P(w|z) from titles, and returns this object.

        A repeated title counts each time. Raises `InputError` if `titles` is
        not a sequence of strings, or has no word.
        """
        tokenized = training_titles(titles, self.tokenizer)
        counts = tokenized.counts
        shape = (len(tokenized.vocabulary), self.topics)
        topics = np.random.default_rng(self.seed).random(shape, np.float32)
        topics /= topics.sum(axis=0)
        mixtures = uniform_mixtures(len(titles), self.topics)
        for _ in range(self.iterations):
            topics = em_step(
                counts, topics, mixtures, self.word_prior, self.topic_prior
            )
        self.topics_ = topics
        self.parameters = topics.size
        self._vocabulary = tokenized.vocabulary
        self._shares = (counts.sum(axis=0) / counts.sum())[:, None]
        self._folded: _Folded | None = None
        return self

    def scores(
        self, queries: Sequence[str], titles: tuple[str, ...]
    ) -> Iterator[Scores]:
        """Yields, for each query, `Scores`: log P(q|d). All titles match."""
        if not self.parameters:
            raise not_fitted("PLSASystem")
        _, mixtures, row = self._fold_in(titles)
        known = TokenizedTitles(queries, self.tokenizer, self._vocabulary).ids
        for start in range(0, len(known), _BLOCK):
            block = known[start : start + _BLOCK]
            words = np.unique(np.array(sum(block, []), int))
            logs = self.topics_[words] @ mixtures.T
            logs *= 1 - self.background
            logs += self.background * self._shares[words]
            np.log(logs, out=logs)
            for ids in block:
                scores = logs[np.searchsorted(words, ids)].sum(axis=0)
                yield scores[row], None

    def _fold_in(self, titles: tuple[str, ...]) -> "_Folded":
        if self._folded is None or self._folded.titles != titles:
            # Titles with the same words share a row: their scores are equal.
            rows: dict[tuple[int, ...], int] = {}
            row = [
                rows.setdefault(tuple(sorted(ids)), len(rows))
                for ids in TokenizedTitles(
                    titles, self.tokenizer, self._vocabulary
                ).ids
            ]
            mixtures = fold_in(
                count_matrix(list(rows), len(self._vocabulary)),
                self.topics_,
                self.topic_prior,
                self.fold_in_steps,
            )
            self._folded = _Folded(titles, mixtures, np.array(row))
        return self._folded


class _Folded(NamedTuple):
    """P(z|d) of the titles of a corpus: title i has `mixtures[row[i]]`."""

    titles: tuple[str, ...]
    mixtures: np.ndarray
    row: np.ndarray
