"""Analyse what encoders represent, as section V-A of Palangi et al. 2016."""

from keras_lstm_dssm.analysis.activations import (
    Activations,
    activations,
    each_activations,
)
from keras_lstm_dssm.analysis.data_frames import frame
from keras_lstm_dssm.analysis.keywords import (
    ActiveCell,
    Keyword,
    TopicWord,
    active_cells,
    keywords,
    topics,
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
    "Growth",
    "Keyword",
    "TopicWord",
    "VectorPart",
    "WordEffect",
    "activations",
    "active_cells",
    "attenuation",
    "each_activations",
    "frame",
    "growth",
    "keywords",
    "topics",
    "vector_parts",
]
