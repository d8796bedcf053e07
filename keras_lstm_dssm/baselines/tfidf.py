"""TfidfSystem and LSASystem: TF-IDF vectors, and their truncated SVD."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from keras_lstm_dssm.baselines.scoring_system import Scores, ScoringSystem
from keras_lstm_dssm.baselines.tokenizers import (
    TokenizedTitles,
    Tokenizer,
    alphanumeric,
    not_fitted,
    training_titles,
)
from keras_lstm_dssm.errors import InputError, import_optional
from keras_lstm_dssm.evaluation.dense_system import DenseSystem


class TfidfSystem(ScoringSystem):
    """Ranks by the cosine of sparse TF-IDF vectors.

    The weight of a word in a text is (1 + ln tf) (1 + ln((1 + n)/(1 + df))),
    where n and df count the training texts, all of them and those with the
    word. Words that are not in the training texts are dropped. Retrieval
    returns only documents that share a word with the query. Needs the extra
    `[baselines]`.

    Args:
        min_count: Least number of training texts with a word; rarer words
            are dropped. Default 1.
        tokenizer: String -> words; one of `TOKENIZERS`, or any function.

    Attributes:
        parameters: Number of words.

    Reference: Salton and Buckley 1988, "Term-weighting Approaches in
        Automatic Text Retrieval".

    Example:
    >>> system = TfidfSystem().fit(["red hat", "blue hat", "garden hose"])
    >>> system.encode(["Red hose", "sun"]).count_nonzero(axis=1).tolist()
    [2, 0]
    """

    def __init__(
        self, min_count: int = 1, tokenizer: Tokenizer = alphanumeric
    ) -> None:
        self.min_count = min_count
        self.tokenizer = tokenizer

    def fit(self, texts: Sequence[str]) -> "TfidfSystem":
        """Counts the training texts of each word.

        Args:
            texts: The texts to train on.

        Returns:
            This object.

        Raises:
            InputError: `texts` is not a sequence of strings, no word is in
                `min_count` of them, or scikit-learn is not installed.
        """
        text = import_optional("sklearn.feature_extraction.text", "baselines")
        tokenized = training_titles(texts, self.tokenizer)
        counts = tokenized.counts
        frequent = np.bincount(counts.indices) >= self.min_count
        if not frequent.any():
            raise InputError(
                f"no word is in min_count={self.min_count} of {len(texts)}"
                " texts; lower it"
            )
        words = np.array(list(tokenized.vocabulary), object)[frequent]
        self._vocabulary = {word: i for i, word in enumerate(words)}
        self._weights = text.TfidfTransformer(sublinear_tf=True)
        self._weights.fit(counts[:, frequent])
        self.parameters = len(words)
        return self

    def encode(self, texts: Sequence[str]) -> Any:
        """Computes the vectors of texts.

        Args:
            texts: n strings.

        Returns:
            float32 sparse matrix of SciPy `[n, words]`, in CSR format; rows
            have length 1, or 0 for a text without a known word.

        Raises:
            InputError: `fit` was not called.
        """
        if not self.parameters:
            raise not_fitted("TfidfSystem")
        titles = TokenizedTitles(texts, self.tokenizer, self._vocabulary)
        return self._weights.transform(titles.counts)

    def scores(
        self, queries: Sequence[str], titles: tuple[str, ...]
    ) -> Iterator[Scores]:
        """Scores all titles; see `ScoringSystem.scores`."""
        documents = self.encode(titles).T.tocsr()
        for query in self.encode(queries):
            cosines = (query @ documents).toarray().reshape(-1)
            yield cosines, np.flatnonzero(cosines)


class LSASystem(DenseSystem):
    """Ranks by the cosine of TF-IDF vectors reduced by a truncated SVD.

    Latent semantic analysis: the vectors of `TfidfSystem` are projected onto
    the first right singular vectors of the training texts. Needs the extra
    `[baselines]`.

    Args:
        components: Width of the vectors; they are narrower if the training
            has fewer texts or fewer words. Default 100.
        min_count: See `TfidfSystem`.
        tokenizer: See `TfidfSystem`.
        seed: Seed of the randomised SVD.

    Attributes:
        tfidf: The `TfidfSystem`.
        parameters: Number of values in the singular vectors, and of words.

    Reference: Deerwester et al. 1990, "Indexing by Latent Semantic Analysis".

    Example:
    >>> LSASystem(2).fit(["red hat", "hat"]).encode(["hat"]).shape
    (1, 2)
    """

    def __init__(
        self,
        components: int = 100,
        min_count: int = 1,
        tokenizer: Tokenizer = alphanumeric,
        seed: int = 0,
    ) -> None:
        super().__init__(self.encode, self.encode)
        self.components = components
        self.tfidf = TfidfSystem(min_count, tokenizer)
        self.seed = seed
        self.parameters = 0

    def fit(self, texts: Sequence[str]) -> "LSASystem":
        """Computes the singular vectors; see `TfidfSystem.fit`."""
        extmath = import_optional("sklearn.utils.extmath", "baselines")
        vectors = self.tfidf.fit(texts).encode(texts)
        *_, self._components = extmath.randomized_svd(
            vectors,
            min(self.components, *vectors.shape),
            n_iter=5,  # as in scikit-learn's TruncatedSVD
            random_state=self.seed,
        )
        self.parameters = self.tfidf.parameters + self._components.size
        return self

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Computes the vectors of texts.

        Args:
            texts: n strings.

        Returns:
            float32 `[n, components]`.

        Raises:
            InputError: `fit` was not called.
        """
        if not self.parameters:
            raise not_fitted("LSASystem")
        return self.tfidf.encode(texts) @ self._components.T
