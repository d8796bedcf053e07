"""What a KeyVec finds in documents: key sentences, key words, neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from keras_lstm_dssm.data import Document
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import Index
from keras_lstm_dssm.models import KeyVec

if TYPE_CHECKING:  # the training package imports this one
    from keras_lstm_dssm.training import DocumentTargets


@dataclass(frozen=True)
class ExplainedSentence:
    """Holds a sentence, its p_i, and whether the teacher chooses it.

    Attributes:
        text: The sentence.
        probability: Its p_i.
        salient: Whether it is in S*, the key sentences by a teacher that
            knows the summary; `None` where there is nothing to compare with.
    """

    text: str
    probability: float
    salient: bool | None


@dataclass(frozen=True)
class PredictedWord:
    """Holds a word that the vector of a document predicts.

    Attributes:
        word: The word.
        probability: Its softmax(W_v d + b_v).
        is_key_word: Whether it is one of the document's key words, see
            `KeyWords`.
    """

    word: str
    probability: float
    is_key_word: bool


@dataclass(frozen=True)
class KeyWord:
    """Holds a key word of a document, and how probable a `KeyVec` finds it.

    Key words are the words of highest TF-IDF, see `training.KeyWords`.

    Attributes:
        word: The word.
        rank: Its rank among all words by probability, from 1; `None` for one
            that is not in the vocabulary.
        probability: Its probability, or `None`.
    """

    word: str
    rank: int | None
    probability: float | None


@dataclass(frozen=True)
class NearDocument:
    """Holds one of the nearest documents of another document.

    Attributes:
        id: Its id.
        title: Its title, or without one its first sentence.
        label: Its class; "" without one.
        cosine: The cosine of the vectors of both documents.
    """

    id: str
    title: str
    label: str
    cosine: float


@dataclass(frozen=True)
class ExplainedDocument:
    """Holds a document, and what a `KeyVec` computes for it.

    Attributes:
        id: Its id.
        title: Its title, or without one its first sentence.
        label: Its class; "" without one.
        summary: The sentences of its summary, which the model does not read.
        sentences: The sentences that the model reads, in their order.
        predicted: The most probable words, the most probable one first.
        key_words: The key words, the highest TF-IDF first.
        nearest: The other documents with the nearest vectors.

    Example:
    >>> shown = ExplainedDocument("m1", "Glue", "", [], [], [], [], [])
    >>> shown.title
    'Glue'
    """

    id: str
    title: str
    label: str
    summary: list[str]
    sentences: list[ExplainedSentence]
    predicted: list[PredictedWord]
    key_words: list[KeyWord]
    nearest: list[NearDocument]


def explain_documents(
    model: KeyVec,
    documents: Sequence[Document],
    targets: DocumentTargets | None = None,
    rows: Sequence[int] | None = None,
    words: int = 10,
    nearest: int = 5,
    vectors: np.ndarray | None = None,
) -> list[ExplainedDocument]:
    """Find key sentences, key words and nearest documents of some documents.

    Args:
        model: A trained `KeyVec`.
        documents: The documents, among which the nearest ones are found.
        targets: The key sentences and words by a teacher. Default `None`:
            there is nothing to compare with.
        rows: The positions of the documents to explain. Default `None` for
            all.
        words: Number of words to predict of each. Default 10.
        nearest: Number of nearest documents of each. Default 5.
        vectors: The result of `model.encode` for the documents; by default
            it is computed.

    Returns:
        A result for each of `rows`.

    Raises:
        InputError: There are no documents, or a document has no target.

    Example:
    >>> documents = list(folder.of("test"))
    >>> explained = explain_documents(model, documents, rows=[0])[0]
    >>> explained.predicted[0].word
    'array'
    """
    if not documents:
        raise InputError("found no documents to explain, expected one or more")
    if rows is None:
        rows = range(len(documents))
    if vectors is None:
        vectors = model.encode([document.sentences for document in documents])
    chosen = [documents[row] for row in rows]
    sentences = [document.sentences for document in chosen]
    probabilities = model.probabilities(sentences)
    index = Index.from_vectors(vectors, [one.id for one in documents])
    found, cosines = index.nearest(
        vectors[list(rows)], nearest, exclude=[[row] for row in rows]
    )
    of_words = model.word_probabilities(vectors[list(rows)]).numpy()
    vocabulary = model.key_vocabulary
    return [
        ExplainedDocument(
            document.id,
            name_of(document),
            document.label,
            list(document.summary),
            _sentences(document, p, targets),
            *_words(document, p_words, targets, model, vocabulary, words),
            [
                NearDocument(
                    documents[row].id,
                    name_of(documents[row]),
                    documents[row].label,
                    float(cosine),
                )
                for row, cosine in zip(*hits, strict=True)
                if row >= 0
            ],
        )
        for document, p, p_words, hits in zip(
            chosen, probabilities, of_words,
            zip(found, cosines, strict=True), strict=True,
        )
    ]  # fmt: skip


def name_of(document: Document) -> str:
    """Return the title of a document, or without one its first sentence."""
    return document.title or document.sentences[0]


def _sentences(
    document: Document, p: np.ndarray, targets: DocumentTargets | None
) -> list[ExplainedSentence]:
    salient: list[bool | None] = [None] * len(p)
    if targets is not None and document.summary:
        salient = targets.of(document).marks().tolist()
    return [
        ExplainedSentence(text, probability, is_salient)
        for text, probability, is_salient in zip(
            document.sentences[: len(p)],
            p.tolist(),
            salient[: len(p)],
            strict=True,
        )
    ]


def _words(
    document: Document,
    p: np.ndarray,
    targets: DocumentTargets | None,
    model: KeyVec,
    vocabulary: list[str],
    count: int,
) -> tuple[list[PredictedWord], list[KeyWord]]:
    key_words = [] if targets is None else targets.of(document).key_words
    ids = model.key_word_ids(key_words).tolist()
    known, order = set(ids), np.argsort(-p, kind="stable").tolist()
    rank_of: dict[int, tuple[int | None, float | None]] = {
        row + 1: (rank, float(p[row]))
        for rank, row in enumerate(order, 1)
        if row + 1 in known
    }
    predicted = [
        PredictedWord(vocabulary[row], float(p[row]), row + 1 in rank_of)
        for row in order[:count]
    ]
    return predicted, [
        KeyWord(word, *rank_of.get(i, (None, None)))
        for word, i in zip(key_words, ids, strict=True)
    ]
