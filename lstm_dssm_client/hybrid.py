"""What a hybrid retriever has beside cosines, in NumPy: BM25 and reasons.

The scores are those of `export/graphs/hybrid.py`, from the same postings.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from lstm_dssm_client.bm25 import FORMS, Postings, word_forms
from lstm_dssm_client.local_encoder import LocalEncoder
from lstm_dssm_client.portable_file import PortableFile
from lstm_dssm_client.signatures import HYBRID_PARTS
from lstm_dssm_client.weighted_parts import WeightedParts

TOWERS, WORDS, BM25 = HYBRID_PARTS

_LEAST = 5e-5
"""What a word adds below this is left out: four digits, as in the graph."""


def read_postings(file: PortableFile, count: int) -> Postings:
    """Reads the postings of a file that has `count` documents."""
    bounds = file.array("bm25/bounds", None, dtype=np.int64)
    documents = file.array("bm25/documents", None, dtype=np.int32)
    forms = file.texts("bm25/forms")
    terms = file.array("bm25/form_terms", len(forms), dtype=np.int32)
    if (
        not _inside(documents, count)
        or not _inside(terms, len(bounds) - 1)
        or [*bounds[[0, -1]]] != [0, len(documents)]
        or (np.diff(bounds) < 1).any()
    ):
        raise ValueError("bm25 has postings of other documents or terms")
    term_of = dict(zip(map(bytes.decode, forms), terms.tolist(), strict=True))
    scores = file.array("bm25/scores", len(documents))
    return Postings(count, term_of, bounds, documents, scores)


def _inside(numbers: np.ndarray, size: int) -> bool:
    return not len(numbers) or bool(0 <= numbers.min() <= numbers.max() < size)


class Hybrid:
    """Ranks by cosines and BM25, and explains the scores.

    Args:
        file: File of a hybrid retriever.
        count: Number of its documents.
        encoder: The parts that encode queries, or `None` if BM25 alone ranks.

    Attributes:
        postings: The postings of BM25, or `None` if its weight is 0.
    """

    def __init__(
        self, file: PortableFile, count: int, encoder: WeightedParts | None
    ) -> None:
        settings = file.header["hybrid"]
        self._weight = read_weights(settings)[BM25]
        self._forms_of = FORMS[settings["bm25_words"]]
        self.encoder = encoder
        self.postings = read_postings(file, count) if self._weight else None

    def scores(self, text: bytes, cosines: np.ndarray | None) -> np.ndarray:
        """Computes the scores of all documents for a query, float32 `[count]`.

        `cosines` are those of the query's vector, if it has one.
        """
        scores: Any = np.float32(0)
        if cosines is not None:
            assert self.encoder is not None
            scores = np.float32(self.encoder.vector_weight) * cosines
        if self.postings is None:
            return scores
        bm25, _ = self._scaled(self.postings, word_forms(self._forms_of, text))
        bm25 += scores
        return bm25

    def _scaled(
        self, postings: Postings, forms: list[tuple[str, str]]
    ) -> tuple[np.ndarray, np.float32]:
        """Computes the part of BM25, and the factor from scores to it."""
        sums = postings.sums(form for _, form in forms)
        largest = sums.max()
        weight = np.float32(self._weight)
        scale = weight / largest if largest else np.float32(0)
        sums *= scale
        return sums, scale

    def reasons(
        self,
        text: bytes,
        rows: np.ndarray,
        query: np.ndarray | None,
        vectors: np.ndarray | None,
    ) -> list[tuple[dict[str, float], dict[str, dict[str, float]]]]:
        """Explains the scores of some documents for a query.

        Args:
            text: The query.
            rows: The numbers of the documents.
            query: The query's vector, if it has one.
            vectors: Those of the documents.

        Returns:
            `parts` and `words` of an `ExplainedHit` for each document.
        """
        parts = {name: np.zeros(len(rows)) for name in HYBRID_PARTS}
        words: dict[str, list[dict[str, float]]] = {
            name: [{} for _ in rows] for name in (BM25, WORDS)
        }
        if self.postings is not None:
            forms = word_forms(self._forms_of, text)
            bm25, scale = self._scaled(self.postings, forms)
            parts[BM25] = bm25[rows]
            for word, form in forms:
                share = self.postings.scores_of(form, rows) * scale
                _add(words[BM25], word, share)
        if self.encoder is not None:
            assert query is not None and vectors is not None
            weighted = np.float32(self.encoder.vector_weight) * vectors
            for name, columns in self.encoder.columns.items():
                parts[name] = weighted[:, columns] @ query[columns]
            if WORDS in self.encoder.columns:
                names, of_words = self._word_vectors(text)
                columns = self.encoder.columns[WORDS]
                shares = of_words @ weighted[:, columns].T
                for word, share in zip(names, shares, strict=True):
                    _add(words[WORDS], word, share)
        return [
            (
                {name: float(part[row]) for name, part in parts.items()},
                {name: _shown(shares[row]) for name, shares in words.items()},
            )
            for row in range(len(rows))
        ]

    def _word_vectors(self, text: bytes) -> tuple[list[str], np.ndarray]:
        """Returns the words of a text and the vectors of which it is the sum.

        The sum is the words part of the text's vector.
        """
        assert self.encoder is not None
        encoder: LocalEncoder = self.encoder.vectors[-1].source
        scale = self.encoder.scales[-1]
        words = encoder.split(text)
        vectors = encoder.compose(words)
        length = np.linalg.norm(vectors.sum(axis=0))
        return words, vectors * (scale / length if length else np.float32(0))


def _add(shares: list[dict[str, float]], word: str, more: np.ndarray) -> None:
    """Adds what one more occurrence of a word adds to each document."""
    for of_document, share in zip(shares, more.tolist(), strict=True):
        of_document[word] = of_document.get(word, 0.0) + share


def _shown(shares: dict[str, float]) -> dict[str, float]:
    return {w: round(s, 4) for w, s in shares.items() if abs(s) > _LEAST}


def read_weights(settings: Mapping[str, Any]) -> dict[str, float]:
    """Returns the weights of a file's parts, which sum to 1."""
    weights = {name: float(settings[name]) for name in HYBRID_PARTS}
    if min(weights.values()) < 0 or not abs(sum(weights.values()) - 1) < 1e-6:
        raise ValueError(f"found the weights {weights}, expected a sum of 1")
    return weights
