"""Salient sentences: the targets that p_i of `KeyVec` is trained on."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import evaluate

MAX_SALIENT = 10
"""K of Bi and Ma 2017, the largest number of salient sentences."""

_SMALLEST_STEP = 1e-5  # similarities are rounded to 5 decimals


def largest_salient(sentences: int) -> int:
    """Returns K, the largest number of salient sentences of a document.

    K is 10 as in Bi and Ma 2017, but not more than a quarter of the
    sentences, since 10 would be nearly all of a short document.

    Args:
        sentences: The number of sentences of the document.

    Example:
    >>> [largest_salient(sentences) for sentences in (1, 8, 174)]
    [1, 2, 10]
    """
    return min(MAX_SALIENT, max(1, sentences // 4))


def salience_threshold(similarities: Iterable[np.ndarray]) -> float:
    """Computes the threshold theta with which half of K sentences are salient.

    The paper gives no number. Half of the documents have K/2 (rounded up) or
    more sentences above this threshold.

    Args:
        similarities: Float `[sentences]` for each training document, see
            `SalienceTeacher.similarities`. Documents without a summary, with
            NaN, are left out.

    Raises:
        InputError: No document has a summary.

    Example:
    >>> salience_threshold([np.array([0.9, 0.2]), np.array([0.5, 0.4])])
    0.499995
    """
    halves = []
    for similarity in similarities:
        if not np.isnan(similarity[0]):
            half = -(-largest_salient(len(similarity)) // 2)
            halves.append(float(np.sort(similarity)[-half]))
    if not halves:
        raise InputError(
            "found no training document with a summary, which sentences are"
            " compared with and key words taken from: add summaries, or take"
            " key words from all the text (recipe keyvec_document)"
        )
    median = sorted(halves)[(len(halves) - 1) // 2]
    # Just below, because only what is above the threshold is salient.
    return round(median - _SMALLEST_STEP / 2, 6)


def salient_sentences(similarity: np.ndarray, theta: float) -> np.ndarray:
    """Chooses the salient sentences of a document, S* of Bi and Ma 2017.

    These are the sentences whose similarity exceeds theta, the K most similar
    ones if there are more (see `largest_salient`). Of sentences with the same
    similarity the earlier ones are chosen. A document without such a sentence
    keeps its most similar one: trained on none, the model would learn that
    there are no key sentences. A document without a summary (NaN) has its
    first K.

    Args:
        similarity: Float `[sentences]`, at least one.
        theta: The threshold; -inf for no threshold.

    Returns:
        bool `[sentences]`, at least one is `True`.

    Example:
    >>> salient_sentences(np.array([0.1, 0.9, 0.3, 0.1]), 0.2).tolist()
    [False, True, False, False]
    """
    # A stable order keeps the order of positions among ties and NaN.
    order = np.argsort(-similarity, kind="stable")
    order = order[: largest_salient(len(similarity))]
    if not np.isnan(similarity[0]):
        above = order[similarity[order] > theta]
        order = above if len(above) else order[:1]
    salient = np.zeros(len(similarity), bool)
    salient[order] = True
    return salient


@dataclass
class SalienceCounts:
    """Counts how many sentences of documents are salient.

    Attributes:
        theta: The threshold.
        documents: The number of documents.
        sentences: The number of sentences of all documents.
        salient: The number of salient ones of them.
        none: The number of documents with a summary and no sentence above
            the threshold, which keep their most similar one.
        full: The number of documents with K salient sentences.
        no_summary: The number of documents without a summary, which have
            their first K.
    """

    theta: float
    documents: int = 0
    sentences: int = 0
    salient: int = 0
    none: int = 0
    full: int = 0
    no_summary: int = 0

    @classmethod
    def from_similarities(
        cls, similarities: Iterable[np.ndarray], theta: float
    ) -> "SalienceCounts":
        """Counts what `salient_sentences` chooses.

        Args:
            similarities: Float `[sentences]` for each document.
            theta: The threshold.
        """
        counts = cls(theta)
        for similarity in similarities:
            salient = int(salient_sentences(similarity, theta).sum())
            counts.documents += 1
            counts.sentences += len(similarity)
            counts.salient += salient
            counts.full += salient == largest_salient(len(similarity))
            if np.isnan(similarity[0]):
                counts.no_summary += 1
            else:
                counts.none += not (similarity > theta).any()
        return counts

    def describe(self) -> str:
        """Describes the counts in one line."""
        line = (
            f"salient: {self.salient / self.sentences:.1%} of"
            f" {self.sentences:,} sentences, theta {self.theta:g};"
            f" of {self.documents:,} documents {self.none / self.documents:.1%}"
            " have none above theta and keep their most similar sentence,"
            f" {self.full / self.documents:.1%} have the largest number"
        )
        if self.no_summary:
            line += f"; {self.no_summary:,} without a summary: the first ones"
        return line


class Agreement(NamedTuple):
    """Holds means over documents of how well scores rank salient sentences.

    Attributes:
        precision: The share of salient sentences among as many sentences as
            are salient, those with the largest scores.
        average_precision: The average precision of the ranking by score.
        base_rate: The share of salient sentences among all, which is the
            precision of random scores.
    """

    precision: float
    average_precision: float
    base_rate: float


def agreement(
    salient: Sequence[np.ndarray], scores: Sequence[np.ndarray]
) -> Agreement:
    """Measures how well scores of sentences rank the salient ones first.

    Args:
        salient: bool `[sentences]` for each document, with a `True`.
        scores: Float `[sentences]` for each document: the similarities by
            another teacher, or the probabilities of a model. Of equal scores
            the earlier sentence counts as the larger.

    Example:
    >>> agreement([np.array([True, False, True])], [np.array([0.9, 0.5, 0.1])])
    Agreement(precision=0.5, average_precision=0.833..., base_rate=0.666...)
    """
    run, qrels, precisions = {}, {}, []
    for number, (marks, values) in enumerate(zip(salient, scores, strict=True)):
        order = np.argsort(-values, kind="stable")
        precisions.append(marks[order[: marks.sum()]].mean())
        run[str(number)] = {
            str(row): float(-rank) for rank, row in enumerate(order.tolist())
        }
        qrels[str(number)] = {
            str(row): int(mark) for row, mark in enumerate(marks)
        }
    return Agreement(
        float(np.mean(precisions)),
        evaluate(run, qrels, names=("map",))["map"],
        float(np.mean([marks.mean() for marks in salient])),
    )
