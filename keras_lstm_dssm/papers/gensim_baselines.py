"""Baselines whose vectors gensim computes: Doc2Vec, averaged word2vec."""

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_lstm_dssm.errors import import_optional
from keras_lstm_dssm.evaluation.bm25 import (
    Tokenizer,
    alphanumeric,
    not_fitted,
    training_titles,
)
from keras_lstm_dssm.evaluation.systems import DenseSystem
from keras_lstm_dssm.training.skip_gram import train_gensim


class _GensimSystem(DenseSystem):
    """Base of systems whose vectors gensim trains, by the same settings."""

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
        """Computes the vectors of n texts, float32 `[n, vector_size]`.

        Raises:
            InputError: `fit` was not called.
        """
        if not self.parameters:
            raise not_fitted(type(self).__name__)
        return self._encode(texts, self.settings["vector_size"])

    def _encode(self, texts: Sequence[str], size: int) -> np.ndarray:
        raise NotImplementedError(f"{type(self).__name__}._encode")


class Doc2VecSystem(_GensimSystem):
    """Ranks by the cosine of paragraph vectors (PV-DM).

    The vectors of queries and titles are inferred in the same way. The
    defaults are the settings of Palangi et al. 2016, who trained on all
    queries and titles, including those of the test set; `fit` takes any
    texts. The vector of a text depends only on the text, the seed and the
    training, and is the same in every process. A text without a known word
    has a zero vector, and cosine 0 with all others.

    Inferred vectors are cached, so that the titles of a corpus are inferred
    once. Needs the extra `[baselines]`.

    Args:
        vector_size: See `Word2VecSystem`.
        window: Number of words on each side that predict a word.
        sample: Relative frequency above which words are skipped at random.
        negative: Number of negative samples for each word.
        epochs: Passes over the titles in training, and over a text when its
            vector is inferred.
        min_count: See `Word2VecSystem`, as `tokenizer` and `seed`.
        tokenizer: String -> words.
        seed: Seed of all random numbers.

    Attributes:
        model_: The `gensim.models.Doc2Vec`; set by `fit`.
        parameters: Number of values in the vectors of words, of the output
            layer and of the training titles.

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

    def fit(self, titles: Sequence[str]) -> "Doc2VecSystem":
        """Trains the vectors on texts, and returns this object.

        Raises:
            InputError: `titles` is not a sequence of strings, or has no
                word; or gensim is not installed.
        """
        tokenized = training_titles(titles, self.tokenizer)
        words = list(tokenized.vocabulary)
        gensim = import_optional("gensim.models.doc2vec", "baselines")
        tagged = [
            gensim.TaggedDocument([words[i] for i in ids], [number])
            for number, ids in enumerate(tokenized.ids)
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
        # Like `model.infer_vector`, but reproducible. Gensim continues the
        # model's random numbers, and starts from a vector drawn by Python's
        # hash of the text, which differs between processes.
        gensim = import_optional("gensim.models.doc2vec", "baselines")
        model = self.model_
        known = [w for w in self.tokenizer(text) if w in model.wv]
        if not known:
            return np.zeros(size, np.float32)
        model.random.seed(self.seed)
        vector = gensim.pseudorandom_weak_vector(size, " ".join(known), _hash)
        vector = vector.reshape(1, size)
        # Without these gensim writes into arrays that it has freed.
        work, means = np.zeros((2, size), np.float32)
        for alpha in np.linspace(model.alpha, model.min_alpha, model.epochs):
            gensim.train_document_dm(
                model,
                known,
                [0],
                alpha,
                work,
                means,
                learn_words=False,
                learn_hidden=False,
                doctag_vectors=vector,
                doctags_lockf=np.ones(1, np.float32),
            )
        return vector[0]


def _hash(text: str) -> int:
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))


_LONGEST = 10_000  # gensim ignores further words of a sentence


class Word2VecSystem(_GensimSystem):
    """Ranks by the cosine of the mean skip-gram vectors of the words.

    This is the baseline "averaged word2vec" of Bi and Ma 2017, trained on
    one's own texts. The vector of a text is the mean over all of its words
    that occur in training often enough; a text without any has a zero vector,
    and cosine 0 with all others. Needs the extra `[baselines]`.

    Args:
        vector_size: Width of the vectors. Default 100.
        window: Largest distance of two words of a training pair. Default 5.
        negative: Number of negative samples for each pair. Default 5.
        epochs: Passes over the texts. Default 20: gensim's 5 are too few for
            some thousand documents (docs/results/keyvec).
        min_count: Least number of occurrences of a word in training; rarer
            words are ignored. Default 5.
        tokenizer: String -> words; one of `TOKENIZERS`, or any function.
        seed: Seed of all random numbers. Training runs in one thread, so that
            a seed gives one result.

    Attributes:
        words_: The `gensim.models.KeyedVectors`; set by `fit`.
        parameters: Number of values in the vectors and in the output layer.

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
        row = self.words_.key_to_index
        means = np.zeros((len(texts), size), np.float32)
        for number, text in enumerate(texts):
            known = [row[w] for w in self.tokenizer(text) if w in row]
            if known:
                means[number] = self.words_.vectors[known].mean(axis=0)
        return means


def _lines(texts: Sequence[str]) -> Any:
    """Splits texts at line ends; `training_titles` refuses what is no text."""
    if isinstance(texts, str) or not all(isinstance(t, str) for t in texts):
        return texts
    return [line for text in texts for line in text.split("\n")]
