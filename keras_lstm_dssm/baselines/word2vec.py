"""Word2VecSystem: the mean of skip-gram word vectors, computed by gensim."""

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

_LONGEST = 10_000  # gensim ignores further words of a sentence


class Word2VecSystem(GensimSystem):
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
            vector_size, window, negative, epochs, min_count, tokenizer, seed
        )

    def fit(self, texts: Sequence[str]) -> "Word2VecSystem":
        """Trains the vectors of the words.

        Args:
            texts: The texts to train on.

        Returns:
            This object.

        Raises:
            InputError: `texts` is not a sequence of strings, no word occurs
                `min_count` times, or gensim is not installed.
        """
        word2vec = import_optional("gensim.models.word2vec", "baselines")
        tokenized = training_titles(_lines(texts), self.tokenizer)
        words = list(tokenized.vocabulary)
        sentences = [
            [words[i] for i in ids[start : start + _LONGEST]]
            for ids in tokenized.ids
            for start in range(0, len(ids), _LONGEST)
        ]
        model = self._train(
            word2vec.Word2Vec, sentences, f"{len(texts)} texts", sg=1
        )
        self.words_: Any = model.wv
        self.parameters = model.wv.vectors.size + model.syn1neg.size
        return self

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Averages the vectors of the words of each text.

        Args:
            texts: n strings.

        Returns:
            float32 `[n, vector_size]`.

        Raises:
            InputError: `fit` was not called.
        """
        if not self.parameters:
            raise not_fitted("Word2VecSystem")
        row = self.words_.key_to_index
        means = np.zeros((len(texts), self.vector_size), np.float32)
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
