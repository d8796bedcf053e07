"""Baselines that encoders are compared with; all are `evaluation.System`s.

`baselines.skip_thought` is not imported here, as it needs TensorFlow.
"""

from keras_lstm_dssm.baselines.bm25 import BM25System
from keras_lstm_dssm.baselines.doc2vec import Doc2VecSystem
from keras_lstm_dssm.baselines.document_vectors import (
    RandomVectorSystem,
    document_baselines,
)
from keras_lstm_dssm.baselines.plsa import PLSASystem
from keras_lstm_dssm.baselines.tfidf import LSASystem, TfidfSystem
from keras_lstm_dssm.baselines.tokenizers import (
    TOKENIZERS,
    Tokenizer,
    alphanumeric,
    space_separated,
    stemmed,
)
from keras_lstm_dssm.baselines.unigram_lm import UnigramLMSystem
from keras_lstm_dssm.baselines.word2vec import Word2VecSystem

__all__ = [
    "TOKENIZERS",
    "BM25System",
    "Doc2VecSystem",
    "LSASystem",
    "PLSASystem",
    "RandomVectorSystem",
    "TfidfSystem",
    "Tokenizer",
    "UnigramLMSystem",
    "Word2VecSystem",
    "alphanumeric",
    "document_baselines",
    "space_separated",
    "stemmed",
]
