"""Analyses what encoders, pair scorers and KeyVecs compute.

Encoders: what the cells of an LSTM represent (section V-A of Palangi et al.
2016). Pair scorers: which words match (case study of Wan et al. 2016). KeyVec:
which sentences and words of a document are the key sentences and keywords.
"""

from keras_lstm_dssm.analysis.keyvec_report import (
    ExplainedDocument,
    explain_documents,
)
from keras_lstm_dssm.analysis.report import analyze_run
from keras_lstm_dssm.analysis.scorer_report import (
    WordMatch,
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
from keras_lstm_dssm.settings.programs import ReportSettings

__all__ = [
    "Activations", "ActiveCell", "ExplainedDocument", "Growth", "Keyword",
    "ReportSettings", "TopicWord", "VectorPart", "WordEffect", "WordMatch",
    "WordMatrix", "activations", "active_cells", "analyze_run", "attenuation",
    "compare_words", "each_activations", "explain_documents", "frame", "growth",
    "keywords", "strongest_words", "topics", "vector_parts",
]  # fmt: skip
