"""Finds the salient sentences of documents, which are targets of `KeyVec`."""

import itertools
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from keras_lstm_dssm.data.documents import Document
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.bm25 import alphanumeric
from keras_lstm_dssm.evaluation.measures import evaluate_queries, mean
from keras_lstm_dssm.models.two_tower import TwoTower
from keras_lstm_dssm.run_folder import open_towers
from keras_lstm_dssm.settings.fields import SALIENCE_TEACHERS
from keras_lstm_dssm.text.word_hashing import (
    TRIGRAMS,
    as_strings,
    normalize_and_split,
    trigram_ids,
)
from lstm_dssm_client.bm25 import idf, term_shares

MAX_SALIENT = 10  # largest number of salient sentences of any document
_SMALLEST_STEP = 1e-5  # similarities have 5 decimals


def largest_salient(sentences: int) -> int:
    """Returns K, the largest number of salient sentences of a document."""
    return min(MAX_SALIENT, max(1, sentences // 4))


def salience_threshold(similarities: Iterable[np.ndarray]) -> float:
    """Chooses the threshold theta; Bi and Ma 2017 give no number.

    K is the `largest_salient` of a document. The threshold is chosen so that at
    least half of the documents with a summary have K/2 (rounded up) or more
    sentences above the threshold.
    """
    halves = []
    for similarity in similarities:
        if not np.isnan(similarity[0]):
            half = -(-largest_salient(len(similarity)) // 2)
            halves.append(float(np.sort(similarity)[-half]))
    if not halves:
        raise InputError(
            "found no training document with a summary, expected summaries, on"
            " which salient sentences and key words depend: add summaries, or"
            " take key words from all the text (recipe keyvec_document)"
        )
    median = sorted(halves)[(len(halves) - 1) // 2]
    # Similarities must exceed the threshold. The threshold is just below
    # `median`, so that a similarity equal to `median` exceeds the threshold.
    return round(median - _SMALLEST_STEP / 2, 6)


def salient_sentences(similarity: np.ndarray, theta: float) -> np.ndarray:
    """Returns which sentences of a document are salient, bool `[sentences]`."""
    # A stable sort keeps equal values in order of position. Without a summary,
    # all values are NaN, and the first K sentences are salient.
    order = np.argsort(-similarity, kind="stable")
    order = order[: largest_salient(len(similarity))]
    if not np.isnan(similarity[0]):
        above = order[similarity[order] > theta]  # S* of Bi and Ma 2017
        # If no sentence is above theta, the most similar sentence is salient.
        # Without this rule, the model would learn to choose no sentence.
        order = above if len(above) else order[:1]
    salient = np.zeros(len(similarity), bool)
    salient[order] = True
    return salient


@dataclass
class SalienceCounts:
    """The threshold theta, and numbers of documents and salient sentences."""

    theta: float
    documents: int = 0
    sentences: int = 0  # of all documents, salient or not
    salient: int = 0
    none: int = 0  # documents with a summary, but no sentence above theta
    full: int = 0  # documents with K salient sentences
    no_summary: int = 0

    def add(self, similarity: np.ndarray, salient: np.ndarray) -> None:
        """Counts a document; `salient` is the result of `salient_sentences`."""
        count = int(salient.sum())
        self.documents += 1
        self.sentences += len(similarity)
        self.salient += count
        self.full += count == largest_salient(len(similarity))
        if np.isnan(similarity[0]):
            self.no_summary += 1
        else:
            self.none += not (similarity > self.theta).any()

    def describe(self) -> str:
        """Describes the counts in one line."""
        line = (
            f"salient: {self.salient / self.sentences:.1%} of"
            f" {self.sentences:,} sentences, theta {self.theta:g};"
            f" {self.none / self.documents:.1%} of {self.documents:,} documents"
            " have no sentence above theta and keep the most similar sentence,"
            f" {self.full / self.documents:.1%} have the largest number of"
            " salient sentences"
        )
        if self.no_summary:
            line += (
                f"; {self.no_summary:,} have no summary: the first sentences"
                " are salient"
            )
        return line


class Agreement(NamedTuple):
    """How well scores rank salient sentences: means over documents."""

    # R-precision: the precision at rank r if r sentences are salient.
    precision: float
    average_precision: float
    # Share of salient sentences, which is the precision of random scores.
    base_rate: float


def agreement(
    salient: Sequence[np.ndarray], scores: Sequence[np.ndarray]
) -> Agreement:
    """Measures how well scores rank salient sentences before other sentences.

    Both arguments have an array `[sentences]` for each document. Each document
    needs a salient sentence.
    """
    run, qrels, precisions = {}, {}, []
    for index, (marks, values) in enumerate(zip(salient, scores, strict=True)):
        order = np.argsort(-values, kind="stable")
        precisions.append(marks[order[: marks.sum()]].mean())
        run[str(index)] = {
            str(position): float(-rank)
            for rank, position in enumerate(order.tolist())
        }
        qrels[str(index)] = {
            str(position): int(mark) for position, mark in enumerate(marks)
        }
    return Agreement(
        float(np.mean(precisions)),
        mean(evaluate_queries(run, qrels, names=("map",)))["map"],
        float(np.mean([marks.mean() for marks in salient])),
    )


_DOCUMENTS_AT_ONCE = 64

Compare = Callable[[Sequence[Document]], Iterator[np.ndarray]]
"""Function that takes documents with summaries. For each document, it yields
the similarities of the sentences to the summary, float `[sentences]`."""


@dataclass(eq=False)
class SalienceTeacher:
    """Computes how similar sentences are to the summary of their document."""

    compare: Compare
    theta: float | None = None  # `None`: `salience_threshold` chooses theta

    def similarities(
        self, documents: Iterable[Document]
    ) -> Iterator[np.ndarray]:
        """Yields the similarities of each document's sentences, float64.

        The similarity to a summary is the maximum over the summary's sentences
        (Bi and Ma 2017). Only the teacher `"lead"` does not read the summary.
        The sentences of a document without a summary have the similarity NaN.
        """
        stream = iter(documents)
        while block := list(itertools.islice(stream, _DOCUMENTS_AT_ONCE)):
            with_summary = [document for document in block if document.summary]
            similarities = iter(self.compare(with_summary))
            for document in block:
                if document.summary:
                    # Equal sentences need equal values despite rounding errors.
                    yield np.round(next(similarities).astype(np.float64), 5)
                else:
                    yield np.full(len(document.sentences), np.nan)


def _lead(documents: Sequence[Document]) -> Iterator[np.ndarray]:
    """Yields similarities that decrease with the position of a sentence."""
    for document in documents:
        yield 1 / (1 + np.arange(len(document.sentences)))


_K1, _B = 1.2, 0.75


class _BM25:
    """Compares sentences by BM25, with IDFs over all training sentences."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self._frequency: Counter[str] = Counter()
        self._sentences = words = 0
        for document in documents:
            for sentence in document.sentences:
                tokens = alphanumeric(sentence)
                self._frequency.update(set(tokens))
                self._sentences += 1
                words += len(tokens)
        self._mean_length = words / self._sentences if words else 1.0

    def compare(self, documents: Sequence[Document]) -> Iterator[np.ndarray]:
        for document in documents:
            sentences = [alphanumeric(text) for text in document.sentences]
            best = np.zeros(len(sentences))
            for query in map(alphanumeric, document.summary):
                scores = self._scores(query, [*sentences, query])
                if scores[-1]:  # the query has a word
                    # Longer queries have higher scores. Each score is divided
                    # by the query's score for itself, so that one threshold
                    # theta fits all queries.
                    best = np.maximum(best, scores[:-1] / scores[-1])
            yield best

    def _scores(
        self, query: list[str], sentences: list[list[str]]
    ) -> np.ndarray:
        """Returns the BM25 scores of sentences, by Lucene's formula."""
        query_counts = Counter(query)
        counts = np.array(
            [[text.count(word) for word in query_counts] for text in sentences]
        )
        frequency = np.array([self._frequency[word] for word in query_counts])
        lengths = np.array([[len(sentence)] for sentence in sentences])
        shares = term_shares(counts, lengths, self._mean_length, _K1, _B)
        weights = idf(frequency, self._sentences) * [*query_counts.values()]
        return shares @ weights


def _by_cosine(unit_vectors: Callable[[list[str]], Any]) -> Compare:
    """Makes a `Compare` from a function that returns texts' unit vectors."""

    def compare(documents: Sequence[Document]) -> Iterator[np.ndarray]:
        row_of: dict[str, int] = {}
        for document in documents:
            for text in (*document.sentences, *document.summary):
                row_of.setdefault(text, len(row_of))
        vectors: Any = unit_vectors(list(row_of)) if row_of else None
        for document in documents:
            sentences, summary = (
                vectors[[row_of[text] for text in texts]]
                for texts in (document.sentences, document.summary)
            )
            cosines = sentences @ summary.T
            if not isinstance(cosines, np.ndarray):
                cosines = cosines.toarray()
            yield cosines.max(axis=1)

    return compare


def _trigram_vectors(texts: list[str]) -> Any:
    """Returns the counts of texts' letter trigrams, scaled to unit length."""
    from scipy import sparse

    words = normalize_and_split(as_strings(texts))
    ids, word_index = trigram_ids(words.flat_values)
    text_index = words.value_rowids().numpy()[word_index.numpy()]
    counts = sparse.csr_array(
        (np.ones(len(ids)), (text_index, ids.numpy())), (len(texts), TRIGRAMS)
    )
    lengths = np.sqrt((counts * counts).sum(axis=1))
    return sparse.diags_array(1 / lengths) @ counts


def salience_teacher(
    teacher: TwoTower | str | os.PathLike[str], documents: Iterable[Document]
) -> SalienceTeacher:
    """Makes a `SalienceTeacher` from a name, a model or a run folder.

    Args:
        teacher: A trained `TwoTower`; the folder of its run; `"bm25"`;
            `"trigrams"`, the cosine of counts of letter trigrams; or `"lead"`,
            which prefers the first sentences.
        documents: The training documents, for the IDF of `"bm25"`.

    Raises:
        InputError: There is no such run, or its model is not two towers.

    Example:
    >>> teacher = salience_teacher("build/run", folder.of("train"))
    """
    if teacher == "lead":
        return SalienceTeacher(_lead, theta=0.0)
    if teacher == "bm25":
        return SalienceTeacher(_BM25(documents).compare)
    if teacher == "trigrams":
        return SalienceTeacher(_by_cosine(_trigram_vectors))
    if isinstance(teacher, str | os.PathLike) and not os.path.isdir(teacher):
        raise InputError(
            f"salience is {os.fspath(teacher)!r}: found no such folder, "
            f"expected one of {', '.join(SALIENCE_TEACHERS)}, or the "
            "folder of a run of two towers"
        )
    teacher = open_towers(teacher, "salience")
    # Sentences are more like queries than like titles, so the query encoder
    # encodes them. The query encoder also encodes the summary, because equal
    # sentences need equal vectors.
    return SalienceTeacher(_by_cosine(teacher.query_encoder.encode))
