"""Small layers of word vectors, and texts for them."""

from typing import Any

from keras_lstm_dssm.layers import (
    TrigramVectors,
    VocabularyVectors,
    WordVectors,
)

VOCABULARY = ["bolt", "hex", "上海", "x\0"]
TEXTS = [
    "Hex bolt hex", "", "zinc", "BOLT 上海 x\0 new zinc bolt", "hex  BOLT hex",
]  # fmt: skip


def vocabulary_vectors(**arguments: Any) -> VocabularyVectors:
    """A layer with the words above."""
    return VocabularyVectors(
        VOCABULARY, **{"dimension": 3, "split": "space", **arguments}
    )


def layers(max_words: int | None = 4) -> list[WordVectors]:
    return [
        vocabulary_vectors(max_words=max_words),
        TrigramVectors(3, max_words=max_words, split="space"),
    ]
