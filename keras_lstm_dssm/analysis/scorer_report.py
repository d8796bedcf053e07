"""The report of MV-LSTM: which words of a query and an answer match."""

import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from keras_lstm_dssm.analysis.corpus_sections import card_section
from keras_lstm_dssm.analysis.heat_maps import draw_matrices
from keras_lstm_dssm.analysis.strong_cells import (
    StrongCell,
    WordMatrix,
    check_matrix,
    compare_words,
)
from keras_lstm_dssm.cards import CardTable
from keras_lstm_dssm.drawing import Curve, curve_chart
from keras_lstm_dssm.html_report import (
    Cell,
    HtmlList,
    HtmlPicture,
    HtmlSection,
    HtmlTable,
    Strong,
    write_html_report,
)
from keras_lstm_dssm.models import PairScorer


class ComparedQuery(NamedTuple):
    """A query, and the documents that the report compares it with.

    Attributes:
        query: The query.
        documents: What a document is, such as "right answer" -> its text.
    """

    query: str
    documents: dict[str, str]


def write_scorer_report(
    path: str | os.PathLike[str],
    scorer: PairScorer,
    queries: Sequence[ComparedQuery],
    history: Sequence[dict[str, float]] = (),
    pictures: str | os.PathLike[str] | None = None,
    card: Sequence[CardTable] = (),
) -> list[list[WordMatrix]]:
    """Write the report, a page that needs no other file and no network.

    It extends the case study of Wan et al. 2016 by pictures of the whole
    interaction matrices and by what each cell adds to the score.

    Args:
        path: The HTML file to write.
        scorer: A `PairScorer` whose matcher is an `MVLSTM`.
        queries: The queries, each with one document or more.
        history: The figures of the epochs, from `RunFolder.read_history`.
        pictures: A folder in which the pictures are kept as PNG files; by
            default they are in the page only.
        card: The tables of the run's card, from `card_tables`; by default
            the report has none.

    Returns:
        The matrices of each query, one for each of its documents.

    Raises:
        InputError: The matcher has no interaction matrix, or jinja2 or
            matplotlib is not installed.

    Example:
    >>> texts = {"right answer": "memory error", "wrong answer": "apple pie"}
    >>> compared = ComparedQuery("memory stick error", texts)
    >>> write_scorer_report("report.html", scorer, [compared])
    """
    matcher = check_matrix(scorer)
    compared = [
        [compare_words(scorer, query, text) for text in documents.values()]
        for query, documents in queries
    ]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(pictures or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        sections = [
            _query_section(folder / f"matrix_{number}.png", query, matrices)
            for number, (query, matrices) in enumerate(
                zip(queries, compared, strict=True), 1
            )
        ]
        if history:
            sections.append(_loss_section(folder / "loss.png", history))
        if card:
            sections.append(card_section(card))
        write_html_report(
            path,
            "Which words MV-LSTM matches",
            sections,
            f"{len(queries)} queries; {matcher.interaction} interaction, "
            f"the {matcher.k} strongest cells of each slice, "
            f"{'k-max' if matcher.pooling == 'k_max' else 'dynamic'} pooling. "
            "A cell compares a position of the query with one of the "
            "document, both read from left to right and from right to left.",
        )
    return compared


def _query_section(
    path: Path, compared: ComparedQuery, matrices: list[WordMatrix]
) -> HtmlSection:
    titles = [
        f"{name}\nscore {matrix.score:.2f}"
        for name, matrix in zip(compared.documents, matrices, strict=True)
    ]
    draw_matrices(path, matrices, titles)
    unknown = dict.fromkeys(w for matrix in matrices for w in matrix.unknown)
    texts = [f"{name}: {text}" for name, text in compared.documents.items()]
    if unknown:
        texts.append(
            "not in the vocabulary, so that they have one word vector: "
            + ", ".join(unknown)
        )
    tables = [
        HtmlTable(
            ["Rank", "Query", "Document", "Value", "Adds to the score"],
            list(_rows(matrix)),
            f"The strongest cells, {name}",
            text_columns=[1, 2],
        )
        for name, matrix in zip(compared.documents, matrices, strict=True)
    ]
    caption = "Interaction matrices with the strongest cells"
    return HtmlSection(
        compared.query,
        [HtmlList(texts), HtmlPicture(caption, path), *tables],
        "The picture has a row for each word of the query and a column for "
        "each word of the document that the model reads; frames and ranks "
        "mark the cells that k-max pooling takes. What a cell adds to the "
        "score is its value times the derivative of the score; with the last "
        "but one line, which comes from biases and from cells without a "
        "rank, this adds up to the score.",
    )


def _loss_section(
    path: Path, history: Sequence[dict[str, float]]
) -> HtmlSection:
    epochs = [row["epoch"] for row in history]
    loss = Curve(epochs, [row["loss"] for row in history])
    curve_chart(path, {"training": loss}, "epoch", "mean loss of a triple")
    return HtmlSection(
        "Loss by epoch", [HtmlPicture("Loss of training by epoch", path)]
    )


def _rows(matrix: WordMatrix) -> Iterator[list[Cell]]:
    slices = matrix.cells.shape[2]
    ranks = [0] * slices
    cell: StrongCell
    for cell in matrix.strongest:
        ranks[cell.slice] += 1
        rank = str(ranks[cell.slice])
        yield [
            f"slice {cell.slice + 1}, {rank}" if slices > 1 else rank,
            cell.query_word,
            cell.document_word,
            f"{cell.value:.2f}",
            f"{cell.contribution:+.3f}",
        ]
    of_cells = sum(cell.contribution for cell in matrix.strongest)
    yield ["other", "", "", "", f"{matrix.score - of_cells:+.3f}"]
    yield [Strong("score"), "", "", "", Strong(f"{matrix.score:+.3f}")]
