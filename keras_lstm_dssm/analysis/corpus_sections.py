"""The report's parts about many texts, and about the training."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_lstm_dssm.analysis.analysis_page import (
    Html,
    Section,
    heading,
    picture,
    strong,
    table,
    words,
)
from keras_lstm_dssm.analysis.claims import LABELS, Claim
from keras_lstm_dssm.analysis.keywords import topics
from keras_lstm_dssm.analysis.pair_sections import reading
from keras_lstm_dssm.analysis.report_input import Options
from keras_lstm_dssm.analysis.title_map import draw_title_map, title_map
from keras_lstm_dssm.analysis.word_statistics import distinctive
from keras_lstm_dssm.drawing import Curve, curve_chart
from keras_lstm_dssm.evaluation import DenseSystem

_MOST_CELLS = 24
_MOST_WORDS = 12
_METHODS = {"tsne": "t-SNE", "pca": "PCA"}


def topic_section(
    model: Any, queries: Sequence[str], options: Options
) -> Section:
    """Table III, cell by cell."""
    found = topics(
        model.query_encoder, queries, options.topic_cells, options.change
    )
    groups = [[one.word for one in taken] for taken in found.values()]
    best = distinctive(groups, _MOST_WORDS)
    rows = [
        [
            str(cell),
            words(" · ".join(f"{w} ({n})" if n > 1 else w for w, n in own)),
        ]
        for cell, own in list(zip(found, best, strict=True))[:_MOST_CELLS]
    ]
    return Section(
        "Topics of the cells (Table III)",
        f"Words of {len(queries):,} queries that a cell took up while it was "
        f"among the {options.topic_cells} most active of its query, with how "
        "often: the busiest cells, and of each the words that it has more than "
        "the others. Look for cells whose words belong "
        "together in meaning, not in spelling alone: words that share "
        "letters share trigrams, and meet in any encoder of trigrams."
        + reading(model.query_encoder),
        [table(["Cell", "Words"], rows)],
    )


def nearest_section(
    model: Any, query: str, document: str, titles: Sequence[str], most: int = 10
) -> Section:
    """The titles that the query finds."""
    system = DenseSystem(
        model.query_encoder.encode, model.document_encoder.encode
    )
    found = system.retrieve(
        {"": query}, {title: title for title in titles}, most
    )[""]
    rows = [
        [f"{score:.3f}", words(strong(title) if title == document else title)]
        for title, score in found.items()
    ]
    return Section(
        "Nearest titles",
        f"The best of {len(titles):,} titles for the query, by cosine. Ask "
        "of each wrong one which word it shares with the query, or which "
        "letters.",
        [table(["Cosine", "Title"], rows)],
    )


def map_section(
    model: Any, titles: Sequence[str], options: Options, folder: Path
) -> Section:
    """Titles on a plane."""
    rows = np.random.default_rng(0).permutation(len(titles))
    some = [titles[row] for row in rows[: options.map_titles]]
    path = folder / "title_map.png"
    vectors = model.document_encoder.encode(some)
    draw_title_map(path, title_map(some, vectors, options.map))
    return Section(
        "A map of titles",
        f"{len(some):,} titles, laid out by {_METHODS[options.map]}: titles "
        "with like vectors lie together. Islands have colours, and the words "
        "that they have more than the others; look for islands that share a "
        "meaning and not a word. Distances between islands mean little.",
        [picture("Titles on a plane, islands named", path)],
    )


def cost_section(history: Sequence[dict[str, float]], folder: Path) -> Section:
    """Fig. 7, from a run's history."""
    epochs = [row["epoch"] for row in history]
    curves = {
        label: Curve(epochs, [row[name] for row in history])
        for name, label in (("loss", "training"), ("val_loss", "validation"))
        if all(name in row for row in history)
    }
    path = folder / "cost.png"
    curve_chart(path, curves, "epoch", "mean cost (4) of a click", yscale="log")
    return Section(
        "Cost of training by epoch (Fig. 7)",
        "On a logarithmic scale. A curve that still falls at its end wants "
        "more epochs; one that falls while the validation cost rises learns "
        "by heart.",
        [picture("Cost of training by epoch", path)],
    )


def claim_section(claims: Sequence[Claim]) -> Section:
    """The claims as figures."""
    body: list[Html] = []
    for name, label in LABELS.items():
        rows = [
            [
                f"{one.side}, {one.model}",
                f"{one.finding.found:.3f}",
                f"{one.finding.chance:.3f}",
                f"{one.finding.p:.4f}",
                f"{one.finding.number:,}",
            ]
            for one in claims
            if one.claim == name
        ]
        if rows:
            header = ["Tower", "Found", "Chance", "p", "Of"]
            body += [heading(label), table(header, rows)]
    return Section(
        "The paper's claims as figures",
        "Chance chooses as many other words of the same texts, or hands the "
        "texts' active cells around; p is how often it comes out as far off. "
        "What untrained towers show too is no effect of learning: a short "
        "word has few trigrams, and moves any vector little.",
        body,
    )
