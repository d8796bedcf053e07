"""Doc2VecSystem: paragraph vectors, computed by gensim."""

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_lstm_dssm.baselines.gensim_system import GensimSystem
from keras_lstm_dssm.baselines.tokenizers import (
    Tokenizer,
    alphanumeric,
    not_fitted,
    training_titles,
)
from keras_lstm_dssm.errors import import_optional


class Doc2VecSystem(GensimSystem):
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
        vector_size: Width of the vectors.
        window: Number of words on each side that predict a word.
        sample: Relative frequency above which words are skipped at random.
        negative: Number of negative samples for each word.
        epochs: Passes over the titles in training, and over a text when its
            vector is inferred.
        min_count: Least number of occurrences of a word in training; rarer
            words are ignored.
        tokenizer: String -> words; one of `TOKENIZERS`, or any function.
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
            vector_size, window, negative, epochs, min_count, tokenizer, seed
        )
        self.sample = sample

    def fit(self, titles: Sequence[str]) -> "Doc2VecSystem":
        """Trains the vectors, in one thread so that training is reproducible.

        Args:
            titles: The texts to train on.

        Returns:
            This object.

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
        model = self._train(
            gensim.Doc2Vec,
            tagged,
            f"{len(titles)} titles",
            sample=self.sample,
        )
        self.model_: Any = model
        self.parameters = sum(
            array.size
            for array in (model.wv.vectors, model.dv.vectors, model.syn1neg)
        )
        self._vectors: dict[str, np.ndarray] = {}
        return self

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Infers the vectors of texts.

        Args:
            texts: n strings.

        Returns:
            float32 `[n, vector_size]`.

        Raises:
            InputError: `fit` was not called.
        """
        if not self.parameters:
            raise not_fitted("Doc2VecSystem")
        for text in texts:
            if text not in self._vectors:
                self._vectors[text] = self._infer(text)
        return np.array([self._vectors[text] for text in texts])

    def _infer(self, text: str) -> np.ndarray:
        # Like `model.infer_vector`, but reproducible. Gensim continues the
        # model's random numbers, and starts from a vector drawn by Python's
        # hash of the text, which differs between processes.
        gensim = import_optional("gensim.models.doc2vec", "baselines")
        model = self.model_
        size = self.vector_size
        known = [w for w in self.tokenizer(text) if w in model.wv]
        if not known:
            return np.zeros(size, np.float32)
        model.random.seed(self.seed)
        vector = gensim.pseudorandom_weak_vector(size, " ".join(known), _hash)
        vector = vector.reshape(1, size)
        for alpha in np.linspace(model.alpha, model.min_alpha, self.epochs):
            gensim.train_document_dm(
                model,
                known,
                [0],
                alpha,
                learn_words=False,
                learn_hidden=False,
                doctag_vectors=vector,
                doctags_lockf=np.ones(1, np.float32),
            )
        return vector[0]


def _hash(text: str) -> int:
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))
