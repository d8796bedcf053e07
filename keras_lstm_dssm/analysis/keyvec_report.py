"""The report of a KeyVec: key sentences, key words, neighbours, a map.

`explained_documents` computes what the report shows, which is also written as
JSON and CSV.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_lstm_dssm.analysis.drawing import curve_chart
from keras_lstm_dssm.analysis.html import (
    Cell,
    HtmlPicture,
    HtmlSection,
    HtmlTable,
    Shaded,
    Strong,
    write_html_report,
)
from keras_lstm_dssm.analysis.maps import (
    DocumentMap,
    document_map,
    draw_document_map,
)
from keras_lstm_dssm.analysis.tower_report import (
    ReportDocuments,
    card_section,
    epoch_curves,
)
from keras_lstm_dssm.data.documents import Document
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.index import Index
from keras_lstm_dssm.files import write_csv
from keras_lstm_dssm.model_cards.cards import CardTable
from keras_lstm_dssm.models.keyvec import KeyVec
from keras_lstm_dssm.training.salience import Agreement, agreement

if TYPE_CHECKING:  # the training package imports this one
    from keras_lstm_dssm.training.document_targets import DocumentTargets


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
    """Find the key sentences, key words and nearest documents of documents.

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


@dataclass(frozen=True)
class DocumentFigures:
    """Holds the results that the report of a `KeyVec` shows.

    Attributes:
        explained: Some documents with their key sentences and words.
        by_model: How well p_i ranks the key sentences S* before the others,
            over all documents with a summary; `None` if there are none.
        by_position: How well the order of the sentences in the document does;
            `None` if there are no documents with a summary.
        ids: The id of each document of the map.
        map: The map of the documents.
    """

    explained: list[ExplainedDocument]
    by_model: Agreement | None
    by_position: Agreement | None
    ids: list[str]
    map: DocumentMap

    def as_json(self) -> dict[str, Any]:
        """Return all figures as dictionaries, lists, strings and numbers."""
        return {
            "key_sentences": {
                name: values and values._asdict()
                for name, values in (
                    ("model", self.by_model),
                    ("position", self.by_position),
                )
            },
            "documents": [asdict(document) for document in self.explained],
            "map": list(self._map_rows()),
        }

    def write_csv(self, folder: str | os.PathLike[str]) -> None:
        """Write the figures as CSV files.

        The files are `sentences.csv`, `predicted_words.csv`,
        `key_words.csv`, `nearest.csv` and `map.csv`, with a header each.
        In all but the last one, the column `document` has the id of the
        document that a row is about.

        Args:
            folder: The folder, which is created if there is none.
        """
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        for name in ("sentences", "predicted", "key_words", "nearest"):
            file = "predicted_words" if name == "predicted" else name
            rows = [
                {"document": document.id, **asdict(record)}
                for document in self.explained
                for record in getattr(document, name)
            ]
            write_csv(path / f"{file}.csv", rows)
        write_csv(path / "map.csv", list(self._map_rows()))

    def _map_rows(self) -> Iterator[Mapping[str, Any]]:
        for key, label, (x, y) in zip(
            self.ids, self.map.labels, self.map.positions.tolist(), strict=True
        ):
            yield {"id": key, "class": label, "x": x, "y": y}


def document_figures(
    model: KeyVec,
    given: ReportDocuments,
    examples: int = 3,
    map_method: str = "tsne",
    map_documents: int = 2000,
) -> DocumentFigures:
    """Compute what the report of a `KeyVec` shows of its documents.

    The documents to explain, and those of the map, are drawn at random with
    a fixed seed, the former among those with a summary if there are any.

    Args:
        model: A trained `KeyVec`.
        given: The documents, from `read_report_documents`.
        examples: Number of documents to explain. Default 3.
        map_method: See `document_map`.
        map_documents: Largest number of documents on the map. Default 2,000.

    Raises:
        InputError: There are fewer than three documents.
    """
    documents = given.documents
    random = np.random.default_rng(0)
    order = random.permutation(len(documents)).tolist()
    with_summary = [row for row in order if documents[row].summary]
    on_map = sorted(order[:map_documents])
    vectors = model.encode([one.sentences for one in documents])
    layout = document_map(
        vectors[on_map], [documents[row].label for row in on_map], map_method
    )
    by_model = by_position = None
    if with_summary:
        compared = [documents[row] for row in sorted(with_summary)]
        p = model.probabilities([one.sentences for one in compared])
        marks = [given.targets.of(one).marks() for one in compared]
        by_model = agreement(marks, p)
        by_position = agreement(marks, [-np.arange(len(m)) for m in marks])
    explained = explain_documents(
        model,
        documents,
        given.targets,
        (with_summary or order)[:examples],
        vectors=vectors,
    )
    ids = [documents[row].id for row in on_map]
    return DocumentFigures(explained, by_model, by_position, ids, layout)


def write_document_report(
    path: str | os.PathLike[str],
    given: ReportDocuments,
    figures: DocumentFigures,
    history: Sequence[dict[str, float]] = (),
    pictures: str | os.PathLike[str] | None = None,
    card: Sequence[CardTable] = (),
) -> None:
    """Write the report, a page that needs no other file and no network.

    Args:
        path: The HTML file to write.
        given: The documents, from `read_report_documents`.
        figures: What the model finds in them, from `document_figures`.
        history: The figures of the epochs, from `RunFolder.read_history`.
        pictures: A folder in which the pictures are kept as PNG files; by
            default they are in the page only.
        card: The tables of the run's card, from `card_tables`; by default
            the report has none.

    Raises:
        InputError: jinja2 or matplotlib is not installed.

    Example:
    >>> given = read_report_documents("api_documents", "bm25")
    >>> figures = document_figures(model, given)
    >>> write_document_report("report.html", given, figures)
    """
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(pictures or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        sections = [
            *_agreement_sections(given, figures),
            *(_document_section(one) for one in figures.explained),
            _map_section(folder / "document_map.png", given, figures),
        ]
        if history:
            sections.append(_loss_section(folder / "loss.png", history))
        if card:
            sections.append(card_section(card))
        write_html_report(
            path,
            "What KeyVec finds in a document",
            sections,
            f"{len(given.documents):,} documents of the split {given.split}. "
            "The model computes of each sentence the probability p that it "
            "is key, and a vector of the document, from which it predicts key "
            "words. It does not read the summary.",
        )


def _agreement_sections(
    given: ReportDocuments, figures: DocumentFigures
) -> Iterator[HtmlSection]:
    """Yield the section on all documents with a summary, if there are any."""
    compared = {
        "p of the model": figures.by_model,
        "position in the document": figures.by_position,
    }
    rows = [
        [name, f"{found.average_precision:.3f}", f"{found.precision:.3f}"]
        for name, found in compared.items()
        if found
    ]
    if not rows or not figures.by_model:
        return
    number = sum(bool(document.summary) for document in given.documents)
    yield HtmlSection(
        "Key sentences of all documents",
        [HtmlTable(["Ranked by", "Average precision", "Precision"], rows)],
        f"The sentences of each of {number:,} documents are ranked, and "
        f"compared with S*, those that the teacher ({given.teacher}) chooses "
        "because they resemble a sentence of the summary "
        f"({figures.by_model.base_rate:.1%} of all sentences). Precision is "
        "the share of S* among as many of the first sentences as S* has; for "
        f"a random order it is {figures.by_model.base_rate:.3f}.",
    )


def _document_section(document: ExplainedDocument) -> HtmlSection:
    notes = [f"Class: {document.label}."] if document.label else []
    if document.summary:
        notes.append(f"Summary: {' '.join(document.summary)}")
    tables = [_sentence_table(document), _word_table(document)]
    if document.nearest:
        tables.append(_nearest_table(document))
    return HtmlSection(document.title, tables, " ".join(notes))


def _sentence_table(document: ExplainedDocument) -> HtmlTable:
    """Return the sentences, shaded by p relative to the largest p."""
    largest = max(sentence.probability for sentence in document.sentences)
    rows: list[list[Cell]] = []
    for number, sentence in enumerate(document.sentences, 1):
        p = sentence.probability
        note = f"sentence {number}: p = {p:.3f}" + ", in S*" * bool(
            sentence.salient
        )
        rows.append(
            [
                str(number),
                f"{p:.3f}",
                Strong("S*") if sentence.salient else "",
                Shaded(sentence.text, p / largest if largest else 0.0, note),
            ]
        )
    return HtmlTable(
        ["", "p", "Key", "Sentence"],
        rows,
        "Sentences: the colour is proportional to p, and full at the largest "
        "p of the document; S*: key by the teacher",
        text_columns=[3],
    )


def _word_table(document: ExplainedDocument) -> HtmlTable:
    """Return a table of the predicted words and of the key words."""
    rows: list[list[Cell]] = []
    words = zip_longest(document.predicted, document.key_words)
    for number, (predicted, key_word) in enumerate(words, 1):
        row: list[Cell] = [str(number), "", ""]
        if predicted:
            word = predicted.word
            row[1:] = [
                Strong(word) if predicted.is_key_word else word,
                f"{predicted.probability:.4f}",
            ]
        if not key_word:
            row += ["", "", ""]
        elif key_word.rank is None:
            row += [key_word.word, "-", "-"]
        else:
            row += [
                key_word.word,
                f"{key_word.rank:,}",
                f"{key_word.probability:.4f}",
            ]
        rows.append(row)
    return HtmlTable(
        ["", "Predicted", "Probability", "Key word", "Rank",
         "Probability"],
        rows,
        "Words that the vector predicts (bold: a key word), and the key words "
        "of the document, of highest TF-IDF, with their ranks among the "
        "predicted ones (-: not in the vocabulary)",
        text_columns=[1, 3],
    )  # fmt: skip


def _nearest_table(document: ExplainedDocument) -> HtmlTable:
    rows: list[list[Cell]] = [
        [
            f"{near.cosine:.4f}",
            near.title,
            Strong(near.label)
            if near.label and near.label == document.label
            else near.label,
        ]
        for near in document.nearest
    ]
    return HtmlTable(
        ["Cosine", "Document", "Class"],
        rows,
        "Nearest documents (bold: of the same class)",
        text_columns=[1, 2],
    )


def _map_section(
    path: Path, given: ReportDocuments, figures: DocumentFigures
) -> HtmlSection:
    draw_document_map(path, figures.map)
    return HtmlSection(
        "A map of documents",
        [HtmlPicture("Documents on a plane, coloured by class", path)],
        f"{len(figures.ids):,} of {len(given.documents):,} documents: those "
        "with similar vectors lie together. The model has not seen the "
        "classes; the largest ones have a colour. Distances between groups "
        "mean little.",
    )


def _loss_section(
    path: Path, history: Sequence[dict[str, float]]
) -> HtmlSection:
    """Return the curves of the loss and of its parts by epoch."""
    labels = {
        "loss": "training",
        "read_loss": "training, key sentences",
        "key_word_loss": "training, key words",
        "val_loss": "validation",
    }
    curves = epoch_curves(history, labels)
    curve_chart(path, curves, "epoch", "mean loss of a document")
    return HtmlSection(
        "Loss by epoch",
        [HtmlPicture("Loss by epoch", path)],
        "Where the validation loss rises while the loss of training falls, "
        "the model overfits.",
    )
