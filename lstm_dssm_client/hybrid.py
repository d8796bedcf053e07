"""Ranks documents with a hybrid retriever in NumPy, and explains the scores.

The TensorFlow graph in `export/graphs/hybrid.py` computes the same scores.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from lstm_dssm_client.bm25 import FORMS, STOP, TERM_PARTS, Postings, TermScores
from lstm_dssm_client.local_encoder import LocalEncoder
from lstm_dssm_client.portable_file import PortableFile
from lstm_dssm_client.signatures import EXPLAINED_PARTS, HYBRID_PARTS
from lstm_dssm_client.weighted_parts import WeightedParts

TOWERS, WORDS, HUBNESS = "towers", "words", "hubness"

_LEAST_SHARE = 5e-5
"""Explanations omit word contributions up to this size (0.0000 if rounded)."""


def probability(log_odds: Any) -> Any:
    """Returns the sigmoid of log-odds of any shape, float32."""
    return np.float32(1) / (np.float32(1) + np.exp(np.minimum(-log_odds, 80)))


def read_postings(file: PortableFile, count: int) -> Postings:
    """Reads the postings of the file's `count` documents."""
    bounds = file.array("terms/bounds", None, dtype=np.int64)
    documents = file.array("terms/documents", None, dtype=np.int32)
    forms = file.texts("terms/forms")
    terms = file.array("terms/form_terms", len(forms), dtype=np.int32)
    word_count = int(file.header["hybrid"]["terms"])
    if (
        not _are_in_range(documents, 0, count)
        or not _are_in_range(terms, STOP, len(bounds) - 1)
        or not 0 <= word_count < len(bounds)
        or [*bounds[[0, -1]]] != [0, len(documents)]
        or (np.diff(bounds) < 1).any()
    ):
        raise ValueError("the postings do not fit the documents and terms")
    term_of = dict(zip(map(bytes.decode, forms), terms.tolist(), strict=True))
    scores = file.array("terms/scores", len(documents))
    return Postings(count, term_of, word_count, bounds, documents, scores)


def _are_in_range(numbers: np.ndarray, least: int, end: int) -> bool:
    return bool(np.all((least <= numbers) & (numbers < end)))


class Hybrid:
    """Ranks by the log-odds that a document is relevant, and explains scores.

    The log-odds of a document D for a query Q are

        base + w_towers cos_towers(Q, D) + w_words cos_words(Q, D)
             + terms(Q, D) - w_hubness hubness(D)

    `TermScores` computes terms(Q, D). The hubness is the mean cosine of D and
    the nearest training queries.
    """

    def __init__(
        self, file: PortableFile, count: int, encoder: WeightedParts | None
    ) -> None:
        settings = file.header["hybrid"]
        weights = read_weights(settings)
        self.encoder = encoder
        self.base = np.float32(settings["base"])
        self.weak = float(settings["weak"])
        self.terms: TermScores | None = None
        if any(weights[name] for name in TERM_PARTS):
            kind = settings["bm25_words"]
            if kind not in FORMS:
                raise ValueError(f"bm25_words is {kind!r:.40}")
            self.terms = TermScores(read_postings(file, count), kind, weights)
        self._hubness: np.ndarray | None = None
        if weights[HUBNESS]:
            hubness = file.array(HUBNESS, count)
            self._hubness = np.float32(weights[HUBNESS]) * hubness

    def scores(
        self,
        text: bytes,
        cosines: np.ndarray | None,  # of all documents; None without an encoder
    ) -> np.ndarray:
        """Returns all documents' log-odds without `base`, float32 `[count]`."""
        scores: Any = np.float32(0)
        if self.terms is not None:
            scores = self.terms.sums(self.terms.matches(text))
        if cosines is not None:
            assert self.encoder is not None
            scores = scores + np.float32(self.encoder.vector_weight) * cosines
        if self._hubness is not None:
            scores = scores - self._hubness
        return scores

    def reasons(
        self,
        text: bytes,
        rows: np.ndarray,
        query: np.ndarray | None,  # the query's vector; None without an encoder
        vectors: np.ndarray | None,  # vectors of `rows`; None without encoder
    ) -> list[tuple[dict[str, float], dict[str, dict[str, float]]]]:
        """Returns `ExplainedHit.parts` and `.words` of the documents `rows`."""
        parts = {name: np.zeros(len(rows)) for name in HYBRID_PARTS}
        words: dict[str, list[dict[str, float]]] = {
            name: [{} for _ in rows] for name in EXPLAINED_PARTS
        }
        if self.terms is not None:
            for match in self.terms.matches(text):
                name, share = self.terms.shares(match, rows)
                parts[name] += share
                _add(words[name], match.word, share)
        if self._hubness is not None:
            parts[HUBNESS] = -self._hubness[rows]
        if self.encoder is not None:
            assert query is not None and vectors is not None
            weighted = np.float32(self.encoder.vector_weight) * vectors
            for name, columns in self.encoder.columns.items():
                parts[name] = weighted[:, columns] @ query[columns]
            if WORDS in self.encoder.columns:
                query_words, word_vectors = self._word_vectors(text)
                document_vectors = weighted[:, self.encoder.columns[WORDS]]
                shares = word_vectors @ document_vectors.T
                for word, share in zip(query_words, shares, strict=True):
                    _add(words[WORDS], word, share)
        parts["base"] = np.full(len(rows), self.base)
        return [
            (
                {name: float(part[row]) for name, part in parts.items()},
                {name: _rounded(by_row[row]) for name, by_row in words.items()},
            )
            for row in range(len(rows))
        ]

    def _word_vectors(self, text: bytes) -> tuple[list[str], np.ndarray]:
        """Returns a text's words, and a vector for each word.

        The sum of these vectors is the part `WORDS` of the text's vector.
        """
        assert self.encoder is not None
        encoder: LocalEncoder = self.encoder.vectors[-1].source
        scale = self.encoder.scales[-1]
        words = encoder.split(text)
        vectors = encoder.compose(words)
        length = np.linalg.norm(vectors.sum(axis=0))
        return words, vectors * (scale / length if length else np.float32(0))


def _add(totals: list[dict[str, float]], word: str, shares: Any) -> None:
    """Adds a word's contribution to the dictionary of each document."""
    for by_word, share in zip(totals, shares.tolist(), strict=True):
        by_word[word] = by_word.get(word, 0.0) + share


def _rounded(shares: dict[str, float]) -> dict[str, float]:
    return {w: round(s, 4) for w, s in shares.items() if abs(s) > _LEAST_SHARE}


def read_weights(settings: Mapping[str, Any]) -> dict[str, float]:
    """Reads the weights of the parts; checks that they are 0 or more."""
    weights = {
        name: float(settings[name]) for name in HYBRID_PARTS if name != "base"
    }
    if not all(0 <= weight < np.inf for weight in weights.values()):
        raise ValueError(f"found the weights {weights}, expected 0 or more")
    return weights
