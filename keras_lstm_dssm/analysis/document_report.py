"""The report of a KeyVec: key sentences, key words, neighbours, a map."""

import os
import tempfile
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from keras_lstm_dssm.analysis.corpus_sections import card_section
from keras_lstm_dssm.analysis.document_figures import DocumentFigures
from keras_lstm_dssm.analysis.document_map import draw_document_map
from keras_lstm_dssm.analysis.explained_documents import ExplainedDocument
from keras_lstm_dssm.analysis.report_input import ReportDocuments
from keras_lstm_dssm.cards import CardTable
from keras_lstm_dssm.drawing import Curve, curve_chart
from keras_lstm_dssm.html_report import (
    Cell,
    HtmlPicture,
    HtmlSection,
    HtmlTable,
    Shaded,
    Strong,
    write_html_report,
)


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
    epochs = [row["epoch"] for row in history]
    labels = {
        "loss": "training",
        "read_loss": "training, key sentences",
        "key_word_loss": "training, key words",
        "val_loss": "validation",
    }
    curves = {
        label: Curve(epochs, [row[name] for row in history])
        for name, label in labels.items()
        if all(name in row for row in history)
    }
    curve_chart(path, curves, "epoch", "mean loss of a document")
    return HtmlSection(
        "Loss by epoch",
        [HtmlPicture("Loss by epoch", path)],
        "Where the validation loss rises while the loss of training falls, "
        "the model overfits.",
    )
