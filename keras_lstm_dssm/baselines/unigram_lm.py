"""UnigramLMSystem: query likelihood with Dirichlet smoothing."""

from collections.abc import Iterator, Sequence

import numpy as np

from keras_lstm_dssm.baselines.counted_corpus import cached_corpus
from keras_lstm_dssm.baselines.scoring_system import Scores, ScoringSystem
from keras_lstm_dssm.baselines.tokenizers import Tokenizer, alphanumeric
from keras_lstm_dssm.errors import InputError


class UnigramLMSystem(ScoringSystem):
    """Ranks by the probability that a title's language model gives a query.

    log p(q|d) = sum over w in q of log((tf(w, d) + mu p(w|C)) / (|d| + mu)),
    where p(w|C) is the share of word w among all words of the corpus. Words
    that the corpus does not have are left out, for all titles alike.

    Retrieval returns only documents that share a word with the query, as
    engines with an inverted index do: among the others, the model prefers
    nothing but the shortest. Needs the extra `[baselines]`.

    Args:
        mu: Weight of the corpus, in words. Zhai and Lafferty found about
            2000 for articles; titles, which have ten words, want far less.
        tokenizer: String -> words; one of `TOKENIZERS`, or your own.

    Raises:
        InputError: `mu` is not positive, or scipy is not installed.

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
        corpus = cached_corpus(titles, self.tokenizer)
        counts = corpus.counts.tocsc()
        total = counts.sum(axis=0, dtype=np.float64)
        prior = self.mu * total / total.sum()  # mu p(w|C)
        lengths = counts.sum(axis=1, dtype=np.float64)
        # A title without any of the words has log(mu p(w|C) / (|d| + mu)) for
        # each; a word that it has adds log(1 + tf / (mu p(w|C))).
        norms = np.log(lengths + self.mu)
        for query in queries:
            found = [w for w in self.tokenizer(query) if w in corpus.vocabulary]
            ids = [corpus.vocabulary[word] for word in found]
            scores = np.log(prior[ids]).sum() - len(ids) * norms
            match = np.zeros(len(titles), bool)
            for word in ids:
                cells = slice(*counts.indptr[word : word + 2])
                rows = counts.indices[cells]
                scores[rows] += np.log1p(counts.data[cells] / prior[word])
                match[rows] = True
            yield scores, np.flatnonzero(match)
