"""UnigramLMSystem: query likelihood with Dirichlet smoothing."""

from collections.abc import Iterator, Sequence

import numpy as np

from keras_lstm_dssm.baselines.scoring_system import Scores, ScoringSystem
from keras_lstm_dssm.baselines.tokenizers import (
    Tokenizer,
    alphanumeric,
    cached_titles,
)
from keras_lstm_dssm.errors import InputError


class UnigramLMSystem(ScoringSystem):
    """Ranks by the probability of the query in a title's language model.

    log p(q|d) = sum over w in q of log((tf(w, d) + mu p(w|C)) / (|d| + mu)),
    where p(w|C) is the share of word w among all words of the corpus. Words
    that do not occur in the corpus are dropped from queries.

    Retrieval returns only documents that share a word with the query, as
    engines with an inverted index do: the model would order the others by
    their length alone.

    Args:
        mu: Weight of the corpus model, as a number of words. Zhai and
            Lafferty found about 2000 best for articles; titles of about ten
            words need far less.
        tokenizer: String -> words; one of `TOKENIZERS`, or any hashable
            function.

    Raises:
        InputError: `mu` is not positive.

    Reference: Zhai and Lafferty 2004, "A Study of Smoothing Methods for
        Language Models Applied to Information Retrieval", (6) and table I.

    Example:
    >>> documents = {"a": "a cat", "b": "dog"}
    >>> run = UnigramLMSystem(mu=1.0).retrieve({"q": "cat"}, documents, 10)
    >>> round(run["q"]["a"], 4)  # log((1 + 1/3) / (2 + 1))
    -0.8109
    """

    def __init__(
        self, mu: float = 10.0, tokenizer: Tokenizer = alphanumeric
    ) -> None:
        if not mu > 0:
            raise InputError(f"mu is {mu}: expected a number above 0")
        self.mu = mu
        self.tokenizer = tokenizer

    def scores(
        self, queries: Sequence[str], titles: tuple[str, ...]
    ) -> Iterator[Scores]:
        """Scores all titles; see `ScoringSystem.scores`."""
        tokenized = cached_titles(titles, self.tokenizer)
        counts = tokenized.counts.tocsc()
        total = counts.sum(axis=0, dtype=np.float64)
        prior = self.mu * total / total.sum()  # mu p(w|C)
        lengths = counts.sum(axis=1, dtype=np.float64)
        # Each word of the query adds log(mu p(w|C) / (|d| + mu)) to a title's
        # score; a word that the title has adds log(1 + tf / (mu p(w|C))) more.
        norms = np.log(lengths + self.mu)
        for query in queries:
            ids = [
                tokenized.vocabulary[word]
                for word in self.tokenizer(query)
                if word in tokenized.vocabulary
            ]
            scores = np.log(prior[ids]).sum() - len(ids) * norms
            match = np.zeros(len(titles), bool)
            for word in ids:
                cells = slice(*counts.indptr[word : word + 2])
                rows = counts.indices[cells]
                scores[rows] += np.log1p(counts.data[cells] / prior[word])
                match[rows] = True
            yield scores, np.flatnonzero(match)
