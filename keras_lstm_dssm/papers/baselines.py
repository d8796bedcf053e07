"""Baselines: TF-IDF, LSA, a unigram language model, word2vec, Doc2Vec."""

import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from keras_lstm_dssm.errors import InputError, import_optional
from keras_lstm_dssm.evaluation.bm25 import (
    BM25System,
    TokenizedTitles,
    Tokenizer,
    alphanumeric,
    cached_titles,
    not_fitted,
    training_titles,
)
from keras_lstm_dssm.evaluation.runs import System
from keras_lstm_dssm.evaluation.systems import CorpusSystem, DenseSystem, Scores
from keras_lstm_dssm.training.skip_gram import train_gensim


class TfidfSystem(CorpusSystem):
    """Ranks by the cosine of sparse TF-IDF vectors.

    The weight of a word in a text is (1 + ln tf) (1 + ln((1 + n)/(1 + df))),
    where the word occurs tf times in the text, and df of the n training texts
    have the word. Words outside the training texts are dropped. Retrieval
    returns only documents that share a word with the query. Needs the extra
    `[baselines]`.

    Args:
        min_count: A word is dropped if fewer training texts than `min_count`
            have the word. Default 1.
        tokenizer: Text -> words, a value of `bm25.TOKENIZERS` or any function.

    Attributes:
        parameters: Number of words that are not dropped.

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
        """Counts the texts that have each word, and returns this object.

        Raises:
            InputError: `texts` is not a sequence of strings, no word is in
                `min_count` texts, or scikit-learn is not installed.
        """
        module = import_optional("sklearn.feature_extraction.text", "baselines")
        tokenized = training_titles(texts, self.tokenizer)
        counts = tokenized.counts
        frequent = np.bincount(counts.indices) >= self.min_count
        if not frequent.any():
            raise InputError(
                f"no word is in min_count={self.min_count} of {len(texts)}"
                " texts: lower min_count"
            )
        words = np.array(list(tokenized.vocabulary), object)[frequent]
        self._vocabulary = {word: i for i, word in enumerate(words)}
        self._weights = module.TfidfTransformer(sublinear_tf=True)
        self._weights.fit(counts[:, frequent])
        self.parameters = len(words)
        return self

    def encode(self, texts: Sequence[str]) -> Any:
        """Computes vectors: float32 `[n, words]`, a CSR matrix of SciPy.

        Each row has the norm 1. The row of a text without a known word is zero.
        Raises `InputError` before `fit`.
        """
        if not self.parameters:
            raise not_fitted("TfidfSystem")
        titles = TokenizedTitles(texts, self.tokenizer, self._vocabulary)
        return self._weights.transform(titles.counts)

    encode_document = encode

    def scores(
        self, queries: Sequence[str], titles: tuple[str, ...]
    ) -> Iterator[Scores]:
        """Yields, for each query, `Scores`: cosines and matching titles."""
        documents = self.encode(titles).T.tocsr()
        for query in self.encode(queries):
            cosines = (query @ documents).toarray().reshape(-1)
            yield cosines, np.flatnonzero(cosines)


class LSASystem(DenseSystem):
    """Ranks by the cosine of vectors of latent semantic analysis (LSA).

    Projects the vectors of a `TfidfSystem(min_count, tokenizer)` onto the first
    right singular vectors of the training texts. Needs the extra `[baselines]`.

    Args:
        components: Width of the vectors, limited by the number of training
            texts and the number of words. Default 100.
        seed: Seed of the randomised SVD.

    Attributes:
        tfidf: The `TfidfSystem`.
        parameters: Number of values in the singular vectors, plus
            `tfidf.parameters`.

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
        """Computes the singular vectors; raises as `TfidfSystem.fit` does."""
        extmath = import_optional("sklearn.utils.extmath", "baselines")
        vectors = self.tfidf.fit(texts).encode(texts)
        *_, self._components = extmath.randomized_svd(
            vectors,
            min(self.components, *vectors.shape),
            n_iter=5,  # the default of scikit-learn's TruncatedSVD
            random_state=self.seed,
        )
        self.parameters = self.tfidf.parameters + self._components.size
        return self

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Computes vectors, float32 `[n, components]`; needs `fit`."""
        if not self.parameters:
            raise not_fitted("LSASystem")
        return self.tfidf.encode(texts) @ self._components.T


class UnigramLMSystem(CorpusSystem):
    """Ranks by the probability of the query in a title's language model.

    log p(q|d) = sum over w in q of log((tf(w, d) + mu p(w|C)) / (|d| + mu)),
    where word w occurs tf(w, d) times in title d, |d| is the number of words of
    d, and p(w|C) is the share of w among all words of the corpus C. Words that
    do not occur in the corpus are dropped from queries.

    Retrieval returns only documents that share a word with the query: the model
    would order other documents by length alone.

    Args:
        mu: Weight of the corpus model, as a number of words. Zhai and
            Lafferty found about 2000 best for articles; titles need far less.
        tokenizer: Text -> words, a value of `bm25.TOKENIZERS` or any hashable
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
        """Yields, for each query, `Scores`: log p(q|d) and matching titles."""
        tokenized = cached_titles(titles, self.tokenizer)
        counts = tokenized.counts.tocsc()
        total = counts.sum(axis=0, dtype=np.float64)
        prior = self.mu * total / total.sum()  # mu p(w|C)
        lengths = counts.sum(axis=1, dtype=np.float64)
        # Each word of the query adds log(mu p(w|C) / (|d| + mu)) to the score.
        # A query word in the title also adds log(1 + tf / (mu p(w|C))).
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
                entries = slice(*counts.indptr[word : word + 2])
                rows = counts.indices[entries]
                scores[rows] += np.log1p(counts.data[entries] / prior[word])
                match[rows] = True
            yield scores, np.flatnonzero(match)


class _GensimSystem(DenseSystem):
    """Base class of the systems whose vectors are trained by gensim."""

    def __init__(
        self, tokenizer: Tokenizer, seed: int, **settings: Any
    ) -> None:
        super().__init__(self.encode, self.encode)
        self.tokenizer = tokenizer
        self.seed = seed
        self.settings = settings
        self.parameters = 0

    def _train(self, model: str, texts: Sequence[Any], name: str) -> Any:
        return train_gensim(model, texts, name, seed=self.seed, **self.settings)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Computes vectors, float32 `[n, vector_size]`; needs `fit`."""
        if not self.parameters:
            raise not_fitted(type(self).__name__)
        return self._encode(texts, self.settings["vector_size"])

    def _encode(self, texts: Sequence[str], size: int) -> np.ndarray:
        raise NotImplementedError(f"{type(self).__name__}._encode")


class Doc2VecSystem(_GensimSystem):
    """Ranks by the cosine of paragraph vectors (PV-DM).

    The vectors of queries and titles are inferred, and are cached. A vector
    depends only on the text, the seed and the training. A text without a known
    word has a zero vector. The defaults are from Palangi et al. 2016. For the
    other arguments see `Word2VecSystem`; the default of `min_count` is 1. Needs
    the extra `[baselines]`.

    Args:
        window: Number of words on each side that predict a word.
        sample: Relative frequency above which words are skipped at random.
        negative: Number of negative samples for each word.
        epochs: Passes over the titles in training, and over a text when its
            vector is inferred.

    Attributes:
        model_: The `gensim.models.Doc2Vec`; set by `fit`.
        parameters: Number of values in the output layer, and in the vectors of
            words, training titles and classes.

    Reference: Le and Mikolov 2014, "Distributed Representations of Sentences
        and Documents".

    Example:
    >>> system = Doc2VecSystem().fit(["red hat", "blue hat", "garden hose"])
    >>> run = system.rerank({"q": "hat"}, {"q": ["a"]}, {"a": "red hat"})
    """

    def __init__(
        self,
        vector_size: int = 100,
        window: int = 5,
        sample: float = 1e-4,
        negative: int = 5,
        epochs: int = 30,
        min_count: int = 1,
        tokenizer: Tokenizer = alphanumeric,
        seed: int = 0,
    ) -> None:
        super().__init__(
            tokenizer, seed, vector_size=vector_size, window=window,
            sample=sample, negative=negative, epochs=epochs,
            min_count=min_count,
        )  # fmt: skip

    def fit(
        self, titles: Sequence[str], classes: Sequence[str] = ()
    ) -> "Doc2VecSystem":
        """Trains the vectors on texts, and returns this object.

        Args:
            titles: The texts.
            classes: The class of each text, or `""`. Each class has a vector.
                In training, the vector helps to predict the words of the texts
                of the class. Inference uses no classes. Default: no classes.

        Raises:
            InputError: `titles` is not a sequence of strings, no word occurs
                `min_count` times, the numbers of classes and titles differ, or
                gensim is not installed.
        """
        tokenized = training_titles(titles, self.tokenizer)
        if len(classes) not in (0, len(titles)):
            raise InputError(
                f"found {len(classes)} classes for {len(titles)} titles,"
                " expected a class for each title, or none"
            )
        words = list(tokenized.vocabulary)
        gensim = import_optional("gensim.models.doc2vec", "baselines")
        tags: list[list[int | str]] = [[row] for row in range(len(titles))]
        for row, name in enumerate(classes):
            if name:
                # gensim reads an int tag as a text's index, so this tag is str.
                tags[row].append(f"class {name}")
        tagged = [
            gensim.TaggedDocument([words[i] for i in ids], text_tags)
            for ids, text_tags in zip(tokenized.ids, tags, strict=True)
        ]
        model = self._train("Doc2Vec", tagged, f"{len(titles)} titles")
        self.model_: Any = model
        self.parameters = sum(
            array.size
            for array in (model.wv.vectors, model.dv.vectors, model.syn1neg)
        )
        self._vectors: dict[str, np.ndarray] = {}
        return self

    def _encode(self, texts: Sequence[str], size: int) -> np.ndarray:
        for text in texts:
            if text not in self._vectors:
                self._vectors[text] = self._infer(text, size)
        return np.array([self._vectors[text] for text in texts])

    def _infer(self, text: str, size: int) -> np.ndarray:
        # `model.infer_vector` is not reproducible: its random numbers depend on
        # earlier calls and on Python's hash of the text.
        gensim = import_optional("gensim.models.doc2vec", "baselines")
        model = self.model_
        known = [w for w in self.tokenizer(text) if w in model.wv]
        if not known:
            return np.zeros(size, np.float32)
        model.random.seed(self.seed)
        vector = gensim.pseudorandom_weak_vector(size, " ".join(known), _hash)
        vector = vector.reshape(1, size)
        # Without these arrays gensim writes into freed memory.
        work, means = np.zeros((2, size), np.float32)
        for alpha in np.linspace(model.alpha, model.min_alpha, model.epochs):
            gensim.train_document_dm(
                model, known, [0], alpha, work, means,
                learn_words=False, learn_hidden=False, doctag_vectors=vector,
                doctags_lockf=np.ones(1, np.float32),
            )  # fmt: skip
        return vector[0]


def _hash(text: str) -> int:
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))


_LONGEST = 10_000  # gensim ignores further words of a sentence


class Word2VecSystem(_GensimSystem):
    """Ranks by cosine. A text's vector is the mean of its words' vectors.

    This is "averaged word2vec" of Bi and Ma 2017, with skip-gram vectors. A
    text has a zero vector if none of its words occurs `min_count` times in
    training. Needs the extra `[baselines]`.

    Args:
        vector_size: Width of the vectors. Default 100.
        window: Largest distance between words of a training pair. Default 5.
        negative: Number of negative samples for each pair. Default 5.
        epochs: Passes over the texts. Default 20.
        min_count: Least number of occurrences of a word in training; rarer
            words are ignored. Default 5.
        tokenizer: Text -> words, a value of `bm25.TOKENIZERS` or any function.
        seed: Seed of all random numbers. Default 0.

    Attributes:
        words_: The `gensim.models.KeyedVectors`; set by `fit`.
        parameters: Number of values in the word vectors and the output layer.

    Reference: Mikolov et al. 2013, "Distributed Representations of Words and
        Phrases and their Compositionality".

    Example:
    >>> system = Word2VecSystem(min_count=1).fit(["red hat", "blue hat"])
    >>> system.encode(["Hat, hat", ""]).shape
    (2, 100)
    """

    def __init__(
        self,
        vector_size: int = 100,
        window: int = 5,
        negative: int = 5,
        epochs: int = 20,
        min_count: int = 5,
        tokenizer: Tokenizer = alphanumeric,
        seed: int = 0,
    ) -> None:
        super().__init__(
            tokenizer, seed, sg=1, vector_size=vector_size, window=window,
            negative=negative, epochs=epochs, min_count=min_count,
        )  # fmt: skip

    def fit(self, texts: Sequence[str]) -> "Word2VecSystem":
        """Trains the vectors of the words, and returns this object.

        Raises:
            InputError: `texts` is not a sequence of strings, no word occurs
                `min_count` times, or gensim is not installed.
        """
        tokenized = training_titles(_lines(texts), self.tokenizer)
        words = list(tokenized.vocabulary)
        sentences = [
            [words[i] for i in ids[start : start + _LONGEST]]
            for ids in tokenized.ids
            for start in range(0, len(ids), _LONGEST)
        ]
        model = self._train("Word2Vec", sentences, f"{len(texts)} texts")
        self.words_: Any = model.wv
        self.parameters = model.wv.vectors.size + model.syn1neg.size
        return self

    def _encode(self, texts: Sequence[str], size: int) -> np.ndarray:
        rows = self.words_.key_to_index
        means = np.zeros((len(texts), size), np.float32)
        for number, text in enumerate(texts):
            known = [rows[w] for w in self.tokenizer(text) if w in rows]
            if known:
                means[number] = self.words_.vectors[known].mean(axis=0)
        return means


def _lines(texts: Sequence[str]) -> Any:
    if isinstance(texts, str) or not all(isinstance(t, str) for t in texts):
        return texts  # so that `training_titles` raises `InputError`
    return [line for text in texts for line in text.split("\n")]


class RandomVectorSystem(DenseSystem):
    """Ranks by the cosine of random vectors; equal texts have equal vectors.

    Args:
        vector_size: Width of the vectors. Default 100.
        seed: Seed of the vectors.

    Example:
    >>> RandomVectorSystem().encode(["red hat"]).shape
    (1, 100)
    """

    parameters = 0

    def __init__(self, vector_size: int = 100, seed: int = 0) -> None:
        super().__init__(self.encode, self.encode)
        self.vector_size = vector_size
        self.seed = seed

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Draws the vectors of n texts, float32 `[n, vector_size]`."""
        vectors = np.empty((len(texts), self.vector_size), np.float32)
        for number, text in enumerate(texts):
            generator = np.random.default_rng([self.seed, _hash(text)])
            vectors[number] = generator.standard_normal(self.vector_size)
        return vectors


def document_baselines(
    texts: Sequence[str],  # training documents, a sentence on each line
    seed: int = 0,
) -> dict[str, System]:
    """Returns baselines for documents, by name.

    All baselines but BM25 and random vectors are trained on `texts`. Without
    texts, only BM25 and random vectors are returned.
    """
    trained: dict[str, System] = {}
    if texts:
        trained = {
            "tfidf": TfidfSystem().fit(texts),
            "lsa": LSASystem(seed=seed).fit(texts),
            "word2vec": Word2VecSystem(seed=seed).fit(texts),
            "doc2vec": Doc2VecSystem(seed=seed).fit(texts),
        }
    return {
        "bm25": BM25System(tokenizer=alphanumeric),
        **trained,
        "random_vectors": RandomVectorSystem(seed=seed),
    }
