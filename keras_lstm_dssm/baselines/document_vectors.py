"""document_baselines: what document vectors are compared with."""

import zlib
from collections.abc import Sequence

import numpy as np

from keras_lstm_dssm.baselines.bm25 import BM25System
from keras_lstm_dssm.baselines.doc2vec import Doc2VecSystem
from keras_lstm_dssm.baselines.tfidf import LSASystem, TfidfSystem
from keras_lstm_dssm.baselines.tokenizers import alphanumeric
from keras_lstm_dssm.baselines.word2vec import Word2VecSystem
from keras_lstm_dssm.evaluation.dense_system import DenseSystem
from keras_lstm_dssm.evaluation.ranking import System


class RandomVectorSystem(DenseSystem):
    """Ranks by the cosine of random vectors, one for each distinct text.

    Equal texts have equal vectors, in every process. The components are drawn
    from a normal distribution, so that all directions are equally likely.

    Args:
        vector_size: Width of the vectors. Default 100.
        seed: Seed of the vectors.

    Attributes:
        parameters: 0, as nothing is learnt.

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
            checksum = zlib.crc32(text.encode("utf-8", "surrogatepass"))
            generator = np.random.default_rng([self.seed, checksum])
            vectors[number] = generator.standard_normal(self.vector_size)
        return vectors


def document_baselines(
    texts: Sequence[str], seed: int = 0
) -> dict[str, System]:
    """Trains the baselines that document vectors are compared with.

    Args:
        texts: The documents to train on, with one sentence on each line.
            Without any, only systems that need no training are returned.
        seed: Seed of all random numbers.

    Returns:
        Name -> system: `"bm25"`, which has no vectors and needs no training;
        `"tfidf"`; `"lsa"`, TF-IDF reduced by SVD; `"word2vec"`, the mean of
        skip-gram vectors; `"doc2vec"`, paragraph vectors; and
        `"random_vectors"`, which need none, either. Dense vectors are 100
        wide.

    Raises:
        InputError: `texts` is not a sequence of strings, has no word, or an
            optional package is not installed.

    Example:
    >>> systems = document_baselines(texts)
    >>> task.measure(systems["lsa"])
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
