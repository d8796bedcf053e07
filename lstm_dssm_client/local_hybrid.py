"""What a hybrid retriever has beside cosines, in NumPy: BM25 and reasons.

The scores are those of `export/graphs/hybrid.py`, from the same postings.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lstm_dssm_client import terms
from lstm_dssm_client.local_encoder import LocalEncoder
from lstm_dssm_client.portable_file import PortableFile
from lstm_dssm_client.signatures import HYBRID_PARTS
from lstm_dssm_client.words import split_words

TOWERS, WORDS, BM25 = HYBRID_PARTS

_LEAST = 5e-5
"""What a word adds below this is left out: four digits, as in the graph."""


class HybridEncoder:
    """Encodes texts by several parts, into one vector of their columns.

    Args:
        parts: Name of a part -> its encoder.
        weights: Name of a part -> its weight.
    """

    def __init__(
        self, parts: Mapping[str, LocalEncoder], weights: Mapping[str, float]
    ) -> None:
        total = sum(weights[name] for name in parts)
        self._parts = parts
        self._scales = {
            name: np.float32(np.sqrt(weights[name] / total)) for name in parts
        }
        ends = np.cumsum([part.dimension for part in parts.values()]).tolist()
        self.columns = {
            name: slice(start, end)
            for name, start, end in zip(parts, [0, *ends], ends)  # noqa: B905
        }
        self.dimension: int = ends[-1]

    def encode(self, texts: Sequence[bytes]) -> np.ndarray:
        """Returns unit vectors, float32 `[texts, dimension]`."""
        return np.hstack(
            [
                self._scales[name] * part.encode(texts)
                for name, part in self._parts.items()
            ]
        )

    def word_vectors(self, text: bytes) -> tuple[list[str], np.ndarray]:
        """Returns the words of a text and the vectors of which it is the sum.

        The sum is the words part of the text's vector.
        """
        part = self._parts[WORDS]
        words = part.split(text)
        vectors = part.compose(words)
        length = np.linalg.norm(vectors.sum(axis=0))
        scale = self._scales[WORDS] / length if length else np.float32(0)
        return words, vectors * scale


class Posting(NamedTuple):
    """The documents of a term, for one of the words of a query."""

    word: str
    documents: np.ndarray  # ascending
    scores: np.ndarray  # what the term adds to each document's score


class Postings:
    """The postings of `count` documents; see `evaluation.postings.Postings`.

    Args:
        file: File that has them.
        count: Number of documents.
        kind: What BM25 compares, a key of `terms.FORMS`.
    """

    def __init__(self, file: PortableFile, count: int, kind: str) -> None:
        self._count = count
        self._forms_of = terms.FORMS[kind]
        self._bounds = file.array("bm25/bounds", None, dtype=np.int64)
        self._documents = file.array("bm25/documents", None, dtype=np.int32)
        self._scores = file.array("bm25/scores", len(self._documents))
        forms = file.texts("bm25/forms")
        numbers = file.array("bm25/form_terms", len(forms), dtype=np.int32)
        if (
            not _inside(self._documents, count)
            or not _inside(numbers, len(self._bounds) - 1)
            or [*self._bounds[[0, -1]]] != [0, len(self._documents)]
            or (np.diff(self._bounds) < 1).any()
        ):
            raise ValueError("bm25 has postings of other documents or terms")
        self._term = dict(
            zip(map(bytes.decode, forms), numbers.tolist(), strict=True)
        )

    def of(self, text: bytes) -> list[Posting]:
        """Finds the postings of the terms of a query."""
        found = []
        for word in split_words(text, terms.SPLIT, terms.MAX_WORDS):
            for form in self._forms_of(word):
                term = self._term.get(form)
                if term is not None:
                    rows = slice(*self._bounds[term : term + 2])
                    found.append(
                        Posting(word, self._documents[rows], self._scores[rows])
                    )
        return found

    def sums(self, found: Iterable[Posting]) -> np.ndarray:
        """Adds up the scores of BM25 of all documents, float32 `[count]`."""
        sums = np.zeros(self._count, np.float32)
        for _, documents, scores in found:
            sums[documents] += scores  # a term has a document once
        return sums


def _inside(numbers: np.ndarray, size: int) -> bool:
    return not len(numbers) or bool(0 <= numbers.min() <= numbers.max() < size)


class Hybrid:
    """Ranks by cosines and BM25, and explains the scores.

    Args:
        file: File of a hybrid retriever.
        count: Number of its documents.
        encoder: The encoder of queries, or `None` if BM25 alone ranks.
    """

    def __init__(
        self, file: PortableFile, count: int, encoder: HybridEncoder | None
    ) -> None:
        settings = file.header["hybrid"]
        weights = read_weights(settings)
        self.encoder = encoder
        self._vector_weight = np.float32(weights[TOWERS] + weights[WORDS])
        self._bm25_weight = np.float32(weights[BM25])
        self._postings = (
            Postings(file, count, settings["bm25_words"])
            if weights[BM25]
            else None
        )

    def scores(self, text: bytes, cosines: np.ndarray | None) -> np.ndarray:
        """Computes the scores of all documents for a query, float32 `[count]`.

        `cosines` are those of the query's vector, if it has one.
        """
        scores: Any = np.float32(0)
        if cosines is not None:
            scores = self._vector_weight * cosines
        if self._postings is None:
            return scores
        bm25, _ = self._scaled(self._postings, self._postings.of(text))
        bm25 += scores
        return bm25

    def _scaled(
        self, postings: Postings, found: list[Posting]
    ) -> tuple[np.ndarray, np.float32]:
        """Computes the part of BM25, and the factor from scores to it."""
        sums = postings.sums(found)
        largest = sums.max()
        scale = self._bm25_weight / largest if largest else np.float32(0)
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
        if self._postings is not None:
            found = self._postings.of(text)
            bm25, scale = self._scaled(self._postings, found)
            parts[BM25] = bm25[rows]
            for word, documents, scores in found:
                places = np.searchsorted(documents, rows)
                places = np.minimum(places, len(documents) - 1)
                has_term = documents[places] == rows
                _add(words[BM25], word, scores[places] * has_term * scale)
        if self.encoder is not None:
            assert query is not None and vectors is not None
            weighted = self._vector_weight * vectors
            for name, columns in self.encoder.columns.items():
                parts[name] = weighted[:, columns] @ query[columns]
                if name == WORDS:
                    names, of_words = self.encoder.word_vectors(text)
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
