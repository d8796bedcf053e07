"""The report's sections about many texts and about the training."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_lstm_dssm.analysis.claims import CLAIM_LABELS, ClaimResult
from keras_lstm_dssm.analysis.keywords import distinctive_words, topics
from keras_lstm_dssm.analysis.title_map import draw_title_map, title_map
from keras_lstm_dssm.analysis.vector_parts import cell_note
from keras_lstm_dssm.cards import CardTable
from keras_lstm_dssm.drawing import Curve, curve_chart
from keras_lstm_dssm.evaluation import Index
from keras_lstm_dssm.html_report import (
    HtmlPicture,
    HtmlSection,
    HtmlTable,
    Strong,
)
from keras_lstm_dssm.settings.reports import ReportSettings

_MOST_CELLS = 24
_MOST_WORDS = 12
_METHOD_NAMES = {"tsne": "t-SNE", "pca": "PCA"}


def topics_section(
    model: Any, queries: Sequence[str], settings: ReportSettings
) -> HtmlSection:
    """Return Table III: the words of each cell."""
    words_by_cell = topics(
        model.query_encoder, queries, settings.topic_cells, settings.change
    )
    groups = [[word for word, _ in words] for words in words_by_cell.values()]
    rows = [
        [str(cell), " · ".join(f"{w} ({n})" if n > 1 else w for w, n in words)]
        for cell, words in zip(
            words_by_cell, distinctive_words(groups, _MOST_WORDS), strict=True
        )
    ]
    return HtmlSection(
        "Topics of the cells (Table III)",
        [HtmlTable(["Cell", "Words"], rows[:_MOST_CELLS], text_columns=[1])],
        f"The words of {len(queries):,} queries that are assigned to a cell "
        f"while it is among the {settings.topic_cells} most active cells of "
        "the query, with their counts. The cells with the most words come "
        "first; of each, the words that distinguish it from the others. Look "
        "for cells whose words belong together in meaning. Words that share "
        "letters share trigrams, and have similar vectors in any encoder of "
        "trigrams." + cell_note(model.query_encoder),
    )


def nearest_section(
    model: Any, query: str, document: str, titles: Sequence[str], most: int = 10
) -> HtmlSection:
    """Return the titles that are nearest to the query."""
    hits = Index(model, titles).search([query], most)[0]
    rows = [
        [f"{score:.3f}", Strong(title) if title == document else title]
        for title, score in hits
    ]
    return HtmlSection(
        "Nearest titles",
        [HtmlTable(["Cosine", "Title"], rows, text_columns=[1])],
        f"The {len(rows)} of {len(titles):,} titles that are nearest to the "
        "query by cosine. Ask of each wrong one which word, or which letters, "
        "it shares with the query.",
    )


def map_section(
    model: Any, titles: Sequence[str], settings: ReportSettings, folder: Path
) -> HtmlSection:
    """Return a map of the titles on a plane."""
    rows = np.random.default_rng(0).permutation(len(titles))
    sample = [titles[row] for row in rows[: settings.map_titles]]
    path = folder / "title_map.png"
    vectors = model.document_encoder.encode(sample)
    draw_title_map(path, title_map(sample, vectors, settings.map))
    return HtmlSection(
        "A map of titles",
        [HtmlPicture("Titles on a plane, with the names of clusters", path)],
        f"{len(sample):,} titles, laid out by {_METHOD_NAMES[settings.map]}: "
        "titles with similar vectors lie together. Clusters have colours, and "
        "are named by the words that distinguish them from the others. Look "
        "for clusters of titles that share a meaning but no word. Distances "
        "between clusters mean little.",
    )


def cost_section(
    history: Sequence[dict[str, float]], folder: Path
) -> HtmlSection:
    """Return Fig. 7, from the history of a run."""
    epochs = [row["epoch"] for row in history]
    curves = {
        label: Curve(epochs, [row[name] for row in history])
        for name, label in (("loss", "training"), ("val_loss", "validation"))
        if all(name in row for row in history)
    }
    path = folder / "cost.png"
    curve_chart(path, curves, "epoch", "mean cost (4) of a click", yscale="log")
    return HtmlSection(
        "Cost of training by epoch (Fig. 7)",
        [HtmlPicture("Cost of training by epoch", path)],
        "On a logarithmic scale. Where the training cost still falls at the "
        "end, more epochs may help; where it falls while the validation cost "
        "rises, the model overfits.",
    )


def claims_section(claims: Sequence[ClaimResult]) -> HtmlSection:
    """Return the report's section that tests the paper's claims."""
    rows: dict[str, list[list[str]]] = {name: [] for name in CLAIM_LABELS}
    for claim, side, model, (value, chance, p, number) in claims:
        numbers = [f"{value:.3f}", f"{chance:.3f}", f"{p:.4f}", f"{number:,}"]
        rows[claim].append([f"{side}, {model}", *numbers])
    header = ["Encoder", "Value", "Chance", "p", "Of"]
    return HtmlSection(
        "The paper's claims as numbers",
        [HtmlTable(header, rows[n], CLAIM_LABELS[n]) for n in rows if rows[n]],
        "Chance is the mean over random draws: of equally many words of the "
        "same texts or, for cells, of the active cells of another text. The "
        "two-sided p is how often a draw is as far from this mean as the "
        "value. The last column is the number of words or texts. What "
        "untrained encoders show, too, is not an effect of training: a short "
        "word has few trigrams, and changes any vector little. Untrained "
        "encoders have random weights, and the same IDF of words where the "
        "encoder has one.",
    )


def card_section(tables: Sequence[CardTable]) -> HtmlSection:
    """Return what the run's card says of its training and its figures."""
    return HtmlSection(
        "What was trained, and how good it is",
        [
            HtmlTable(
                found.head,
                [
                    [str(cell).replace("`", "") for cell in row]
                    for row in found.rows
                ],
                found.title.replace("`", ""),
                text_columns=[1] if found.title == "Training" else [],
            )
            for found in tables
        ],
        "From CARD.md of the run, which has the recipe and the limits, too.",
    )
