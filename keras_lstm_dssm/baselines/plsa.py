"""PLSASystem: probabilistic latent semantic analysis, MAP estimate."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from keras_lstm_dssm.baselines.corpus import (
    Corpus,
    count_matrix,
    not_fitted,
    training_corpus,
)
from keras_lstm_dssm.baselines.plsa_em import (
    em_step,
    fold_in,
    uniform_mixtures,
)
from keras_lstm_dssm.baselines.scoring import Scores, ScoringSystem
from keras_lstm_dssm.baselines.tokenizers import Tokenizer, alphanumeric
from keras_lstm_dssm.errors import InputError

# Queries whose words are scored by one matrix product.
_BLOCK = 64


class PLSASystem(ScoringSystem):
    """Ranks by the probability that a title's topics give the query.

    log P(q|d) = sum over w in q of
        log((1 - background) sum over z of P(w|z) P(z|d) + background P(w))

    P(w|z) is learnt from titles alone, as the MAP estimate under symmetric
    Dirichlet priors (`plsa_em`); P(z|d) of any title is found with P(w|z)
    fixed, and is uniform for one without a known word. Words that training
    has not seen are left out of queries and titles. Retrieval ranks all
    titles, as topics match without a common word. The title's own words have
    no weight beside its topics, unlike in Hofmann's PLSI-U, which is half a
    `UnigramLMSystem`. Needs the extra `[baselines]`.

    Args:
        topics: T, the number of topics.
        tokenizer: String -> words; one of `TOKENIZERS`, or your own.
        seed: Of the random P(w|z) at the start.
        iterations: EM steps in training.
        word_prior: Pseudo-count of each word in each topic.
        topic_prior: Pseudo-count of each topic in each title.
        background: Weight, from 0 to 1, of P(w), the share of w among all
            words of training.
        fold_in_steps: EM steps that find P(z|d) of a title.

    Raises:
        InputError: A number is out of its range.

    Attributes:
        topics_: P(w|z), float32 `[words, T]`; after `fit`.

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
        if topics < 1:
            raise InputError(f"topics is {topics}: expected 1 or more")
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
        """Learns P(w|z) from titles; one given twice counts twice.

        Raises:
            InputError: Not a sequence of strings, or without a single word.
        """
        corpus = training_corpus(titles, self.tokenizer)
        counts = corpus.counts
        shape = (len(corpus.vocabulary), self.topics)
        topics = np.random.default_rng(self.seed).random(shape, np.float32)
        topics /= topics.sum(axis=0)
        mixtures = uniform_mixtures(len(titles), self.topics)
        for _ in range(self.iterations):
            topics = em_step(
                counts, topics, mixtures, self.word_prior, self.topic_prior
            )
        self.topics_ = topics
        self.parameters = topics.size
        self._vocabulary = corpus.vocabulary
        self._shares = (counts.sum(axis=0) / counts.sum())[:, None]
        self._folded: _Folded | None = None
        return self

    def scores(
        self, queries: Sequence[str], titles: tuple[str, ...]
    ) -> Iterator[Scores]:
        """Scores all titles; see `ScoringSystem.scores`."""
        if not self.parameters:
            raise not_fitted("PLSASystem")
        _, mixtures, row = self._fold_in(titles)
        known = Corpus(queries, self.tokenizer, self._vocabulary).ids
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
            # Titles with the same words share one row, so that their scores
            # are the same to the last bit, wherever they stand.
            rows: dict[tuple[int, ...], int] = {}
            row = [
                rows.setdefault(tuple(sorted(ids)), len(rows))
                for ids in Corpus(titles, self.tokenizer, self._vocabulary).ids
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
    """P(z|d) of a corpus, kept for the next call."""

    titles: tuple[str, ...]
    mixtures: np.ndarray
    row: np.ndarray
