"""Analyse what encoders, matchers and KeyVecs compute.

What encoders represent, as in section V-A of Palangi et al. 2016; which words a
matcher compares, as in the case study of Wan et al. 2016; and which sentences
and words of a document are key for a KeyVec.
"""

from keras_lstm_dssm.analysis.evaluate import evaluate_run
from keras_lstm_dssm.analysis.keyvec_report import (
    ExplainedDocument,
    explain_documents,
)
from keras_lstm_dssm.analysis.scorer_report import (
    StrongCell,
    WordMatrix,
    compare_words,
    strongest_words,
)
from keras_lstm_dssm.analysis.words import (
    ActiveCell,
    Growth,
    Keyword,
    TopicWord,
    VectorPart,
    WordEffect,
    active_cells,
    attenuation,
    frame,
    growth,
    keywords,
    topics,
    vector_parts,
)
from keras_lstm_dssm.encoders.activations import (
    Activations,
    activations,
    each_activations,
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
    "evaluate_run",
    "explain_documents",
    "frame",
    "growth",
    "keywords",
    "strongest_words",
    "topics",
    "vector_parts",
]
