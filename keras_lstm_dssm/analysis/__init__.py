"""Analyse what encoders, matchers and KeyVecs compute.

What encoders represent, as in section V-A of Palangi et al. 2016; which words a
matcher compares, as in the case study of Wan et al. 2016; and which sentences
and words of a document are key for a KeyVec.
"""

from keras_lstm_dssm.analysis.activations import (
    Activations,
    activations,
    each_activations,
)
from keras_lstm_dssm.analysis.data_frames import frame
from keras_lstm_dssm.analysis.explained_documents import (
    ExplainedDocument,
    explain_documents,
)
from keras_lstm_dssm.analysis.keywords import (
    ActiveCell,
    Keyword,
    TopicWord,
    active_cells,
    keywords,
    topics,
)
from keras_lstm_dssm.analysis.strong_cells import (
    StrongCell,
    WordMatrix,
    compare_words,
    strongest_words,
)
from keras_lstm_dssm.analysis.vector_parts import VectorPart, vector_parts
from keras_lstm_dssm.analysis.word_effects import (
    Growth,
    WordEffect,
    attenuation,
    growth,
)

__all__ = [
    "Activations",
    "ActiveCell",
    "ExplainedDocument",
    "Growth",
    "Keyword",
    "StrongCell",
    "TopicWord",
    "VectorPart",
    "WordEffect",
    "WordMatrix",
    "activations",
    "active_cells",
    "attenuation",
    "compare_words",
    "each_activations",
    "explain_documents",
    "frame",
    "growth",
    "keywords",
    "strongest_words",
    "topics",
    "vector_parts",
]
