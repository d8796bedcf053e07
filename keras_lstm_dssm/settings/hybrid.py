"""The settings of a hybrid retriever: weights of its parts, and of BM25."""

import dataclasses
from collections.abc import Collection, Container
from typing import ClassVar

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.settings.fields import (
    BM25_TERMS,
    HYBRID_PARTS,
    Settings,
    setting,
)


@dataclasses.dataclass(frozen=True)
class HybridSettings(Settings):
    """Weights of the parts of a hybrid retriever, and the settings of BM25.

    The score of a title is the weighted sum of the cosine of the towers, the
    cosine of the words part, and its BM25 divided by the largest of all titles
    for the query (0 if no title matches). Defaults are those without dev.

    Attributes:
        towers: Weight of the towers.
        words: Weight of the words part.
        bm25: Weight of BM25.
        k1: Saturation of the term frequency of BM25.
        b: Influence of a title's length on BM25, from 0 to 1.
        bm25_words: What BM25 compares: English stems without stop words,
            words, or letter trigrams. By default stems where Latin letters
            prevail in the titles, trigrams where words are not separated
            (Chinese, Japanese, Thai), words elsewhere.

    Raises:
        InputError: A value is out of bounds, or all weights are 0.

    Example:
    >>> HybridSettings().of_parts(["words", "bm25"]).words
    0.8
    """

    noun: ClassVar[str] = "hybrid"

    towers: float = setting(0.5, least=0)
    words: float = setting(0.4, least=0)
    bm25: float = setting(0.1, least=0)
    k1: float = setting(0.8, least=0)
    b: float = setting(0.5, least=0, most=1)
    bm25_words: str | None = setting(None, choices=BM25_TERMS)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not any(self.weights.values()):
            raise InputError(
                "all weights of the hybrid are 0: expected one or more above 0"
            )

    @property
    def weights(self) -> dict[str, float]:
        """Name of a part -> its weight."""
        return {name: getattr(self, name) for name in HYBRID_PARTS}

    def of_parts(self, names: Collection[str]) -> "HybridSettings":
        """Returns settings where the weights of these parts have a sum of 1.

        That of any other part is 0.

        Raises:
            InputError: The weights of these parts are 0.
        """
        weights = {n: w for n, w in self.weights.items() if n in names}
        total = sum(weights.values())
        if not total:
            raise InputError(
                f"the weights of {', '.join(names)} in the hybrid are 0, and it"
                " has no other part: expected one or more above 0"
            )
        return self.replace(
            **{name: weights.get(name, 0.0) / total for name in HYBRID_PARTS}
        )

    def describe(self, names: Container[str]) -> str:
        """Describes the hybrid of the parts of these names in a line."""
        weights = ", ".join(
            f"{name} {weight:.3g}{'' if name in names else ' (no such part)'}"
            for name, weight in self.weights.items()
        )
        return (
            f"hybrid: {weights}; bm25 of {self.bm25_words}, k1 {self.k1:g},"
            f" b {self.b:g}"
        )
