"""Settings of a hybrid retriever: its parts' weights and BM25's parameters."""

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
    """Weights of the parts of a hybrid retriever, and parameters of BM25.

    The log-odds that a title is relevant are `base` plus the weighted sum of
    four scores, less the weighted hubness. The scores are the cosine of the
    towers, the cosine of the word vectors, BM25, and the share of the query's
    numbers that the title has.

    Attributes:
        towers: Weight of the towers' cosine.
        words: Weight of the cosine between the two texts' sums of word vectors.
        bm25: Weight of BM25. The BM25 score is divided by the sum of the IDFs
            of all words of the query.
        numbers: Weight of the share of the query's numbers that the title has.
        hubness: Weight of the hubness. The hubness is the mean of the title's
            largest cosines with training queries. A title near many queries has
            a large hubness.
        base: Log-odds of a title that matches nothing of the query.
        weak: Probability below which a query's best hit is reported as weak. A
            fit to dev sets `weak` so that nine of ten relevant best hits have a
            higher probability.
        k1: Saturation of the term frequency of BM25.
        b: Influence of a title's length on BM25, from 0 to 1.
        bm25_words: The terms of BM25: words, letter trigrams, or English stems
            of all words but stop words. By default stems if most letters of the
            titles are Latin, trigrams if words are not separated (Chinese,
            Japanese, Thai), otherwise words.

    Raises:
        InputError: A value is out of bounds, or all weights are 0.

    Example:
    >>> HybridSettings().of_parts(["words", "bm25"]).towers
    0.0
    """

    noun: ClassVar[str] = "hybrid"

    towers: float = setting(4.9, least=0)
    words: float = setting(2.6, least=0)
    bm25: float = setting(1.3, least=0)
    numbers: float = setting(0.4, least=0)
    hubness: float = setting(0.0, least=0)
    base: float = setting(-4.7, least=-1000, most=1000)
    weak: float = setting(0.08, least=0, most=1)
    k1: float = setting(0.2, least=0)
    b: float = setting(0.5, least=0, most=1)
    bm25_words: str | None = setting(None, choices=BM25_TERMS)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not any(self.weights.values()):
            raise InputError(
                "all weights of the hybrid are 0: expected one or more above 0"
            )

    def without_dev(
        self,
        names: Collection[str],
        titles: int,
        clicks: int,  # number of training clicks; 0 if it is not known
    ) -> "HybridSettings":
        """Returns settings with weights that suit the parts and the clicks."""
        # All defaults were fitted to the dev splits of four data sets together.
        vectors = tuple(n for n in ("towers", "words") if n in names)
        settings = self.replace(**_WEIGHTS_WITHOUT_DEV.get(vectors, {}))
        if not clicks or "towers" not in names:
            return settings
        share = (clicks / (clicks + 2000)) ** 2
        towers = settings.towers * share
        # With many clicks for each title, a title near many queries is popular.
        # With few clicks, this title is usually a wrong result.
        hubness = 1.2 * towers * titles / (titles + clicks)
        # With few clicks, words get most of the weight that towers lose.
        words = settings.words + settings.towers * (1 - share) ** 3
        return settings.replace(towers=towers, words=words, hubness=hubness)

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each part, by the part's name."""
        return {name: getattr(self, name) for name in HYBRID_PARTS}

    def of_parts(self, names: Collection[str]) -> "HybridSettings":
        """Returns settings with weight 0 for the parts that are not named."""
        weights = {n: w * (n in names) for n, w in self.weights.items()}
        if not (weights["towers"] or weights["words"]):
            weights["hubness"] = 0.0  # hubness needs vectors
        if not any(weights.values()):
            raise InputError(
                f"the weights of {', '.join(names)} in the hybrid are 0, and"
                " there is no other part: expected one or more above 0"
            )
        return self.replace(**weights)

    def describe(self, names: Container[str]) -> str:
        """Describes a hybrid with the named parts, in one line."""
        weights = ", ".join(
            f"{name} {weight:.3g}{'' if name in names else ' (no such part)'}"
            for name, weight in self.weights.items()
        )
        return (
            f"hybrid: {weights}; base {self.base:.3g}, weak below"
            f" {self.weak:.2g}; terms are {self.bm25_words}, k1 {self.k1:g},"
            f" b {self.b:g}"
        )


_WEIGHTS_WITHOUT_DEV: dict[tuple[str, ...], dict[str, float]] = {
    ("towers",): {"towers": 5.1, "bm25": 2.7, "numbers": 0.7, "base": -4.1},
    ("words",): {"words": 3.5, "bm25": 3.2, "numbers": 1.1, "base": -5.4},
    (): {"bm25": 4.9, "numbers": 0.7, "base": -4.4},
}
"""Which of "towers" and "words" the hybrid has -> weights that differ from the
defaults. If the hybrid has both parts, all weights are the defaults."""
