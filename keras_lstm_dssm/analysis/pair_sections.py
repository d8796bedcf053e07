"""The report's sections about one query and one title."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from keras_lstm_dssm.analysis.activations import (
    Activations,
    activations,
    is_recurrent,
)
from keras_lstm_dssm.analysis.heat_maps import (
    draw_activations,
    draw_active,
    draw_aligned,
)
from keras_lstm_dssm.analysis.keywords import Keyword, keywords
from keras_lstm_dssm.analysis.vector_parts import (
    WHOLE_VECTOR,
    VectorPart,
    cell_note,
    common_parts,
    part_products,
)
from keras_lstm_dssm.analysis.word_effects import SIDES, attenuation, growth
from keras_lstm_dssm.encoders import TextEncoder
from keras_lstm_dssm.html_report import (
    Bar,
    Cell,
    HtmlPicture,
    HtmlSection,
    HtmlTable,
    Strong,
)
from keras_lstm_dssm.settings.reports import ReportSettings

_DIRECTIONS = ("Cells, left to right", "Cells, right to left")


def pair_sections(
    model: Any, texts: tuple[str, str], settings: ReportSettings, folder: Path
) -> Iterator[HtmlSection]:
    """Yield the sections; those about cells only for recurrent encoders.

    Args:
        model: A `TwoTower`.
        texts: The query and the title.
        settings: The thresholds, for active cells and keywords.
        folder: The folder in which pictures are written.
    """
    towers = model.query_encoder, model.document_encoder
    read = [
        activations(tower, text)
        for tower, text in zip(towers, texts, strict=True)
        if is_recurrent(*towers)
    ]
    if read:
        cells = min(settings.cells, read[0].y.shape[1])
        settings = settings._replace(cells=cells)
    vectors = [
        tower.encode([text])[0]
        for tower, text in zip(towers, texts, strict=True)
    ]
    if len(common_parts(model)) > 1:
        yield _parts_section(model, vectors)
    yield _aligned_section(model, texts, read, settings, folder)
    if read:
        yield _activations_section(read, folder)
        yield _active_cells_section(read, settings, folder)
    yield _words_section(towers, texts, vectors, read, settings)


def _parts_section(model: Any, vectors: list[np.ndarray]) -> HtmlSection:
    query, document = vectors
    whole = VectorPart(WHOLE_VECTOR, 0, len(query))
    parts = [*common_parts(model), whole]
    query_shares, document_shares, cosines = (
        part_products(parts, left[np.newaxis], right)[0]
        for left, right in (
            (query, query), (document, document), (query, document),
        )
    )  # fmt: skip
    rows = [
        [
            Strong(part.name) if part is whole else part.name,
            " to ".join(map(str, sorted({part.start, part.stop - 1}))),
            f"{query_shares[index]:.1%}",
            f"{document_shares[index]:.1%}",
            f"{cosines[index]:+.3f}",
        ]
        for index, part in enumerate(parts)
    ]
    header = [
        "Part", "Numbers", "Share of the query", "Share of the document",
        "Adds to the cosine",
    ]  # fmt: skip
    return HtmlSection(
        "Parts of the vector",
        [HtmlTable(header, rows)],
        f"A text's vector of {whole.stop} numbers consists of the final output "
        "of an LSTM, a sum of trained rows for its letter trigrams, a sketch "
        "of its words that is not trained, and one number that raises the norm "
        "of a short title's sketch to that of a long one's. A share is that of "
        "the vector's squared norm; the cosine is the sum of what the parts "
        "add. Only the LSTM has cells: activations, active cells, keywords "
        "and topics describe the LSTM, everything else the whole vector.",
    )


def _aligned_section(
    model: Any,
    texts: tuple[str, str],
    read: list[Activations],
    settings: ReportSettings,
    folder: Path,
) -> HtmlSection:
    growing = growth(model, *texts)
    path = folder / "aligned.png"
    draw_aligned(path, growing, read, settings.cells)
    text = (
        "The cosine after each word of one text, with the whole other text. "
        "Look for the words at which it rises, which the pair has in common, "
        "and for those that do not change it."
    )
    if len(growing.parts) > 1:
        text += " The broken lines are what each part of the vector adds."
    if read:
        text += (
            f" Above it, the {settings.cells} cells that add most to the final "
            "cosine. A cell that ends with the same colour in both texts adds "
            "to the cosine; the word at which it takes this colour is the "
            "word it responds to." + cell_note(model.query_encoder)
        )
    caption = "Cells and cosine after each word of the query and the title"
    title = "The query and the title, word by word"
    return HtmlSection(title, [HtmlPicture(caption, path)], text)


def _activations_section(read: list[Activations], folder: Path) -> HtmlSection:
    networks = [network for text in read for network in text.directions]
    draw = partial(draw_activations, others=networks)
    return HtmlSection(
        "Activations (Figs. 4 and 5 of the paper)",
        _pictures(read, folder, "activations", draw),
        "Every cell at every word: red is positive, blue negative, white "
        "zero or after the last word. All pictures have one range of "
        "colours, proportional to the square root, so that small values are "
        "visible. In c(t) and y(t), a row that keeps its colour from one word "
        "to the end remembers that word. Where the input gates are pale, the "
        "network passes little of that word on.",
    )


def _active_cells_section(
    read: list[Activations], settings: ReportSettings, folder: Path
) -> HtmlSection:
    draw = partial(draw_active, cells=settings.cells)
    return HtmlSection(
        f"The {settings.cells} most active cells (Fig. 6)",
        _pictures(read, folder, "active", draw),
        "The cells with the largest |y| at the end of the text, the most "
        "active one on top. Where a cell changes from one word to the next, "
        "it responds to the second word; the table below counts these "
        "changes.",
    )


def _pictures(
    read: list[Activations],
    folder: Path,
    name: str,
    draw: Callable[[Path, Activations], None],
) -> list[HtmlPicture]:
    """Draw a picture for each side, and for each direction of reading."""
    pictures = []
    for side, text in zip(SIDES, read, strict=True):
        for network in text.directions:
            path = folder / f"{name}_{side}{'_back' * network.reverse}.png"
            draw(path, network)
            heading = f"The {side}" + ", from right to left" * network.reverse
            pictures.append(HtmlPicture(f"{heading}: {name}", path, heading))
    return pictures


def _words_section(
    towers: tuple[TextEncoder, TextEncoder],
    texts: tuple[str, str],
    vectors: list[np.ndarray],
    read: list[Activations],
    settings: ReportSettings,
) -> HtmlSection:
    tables = []
    for index, side in enumerate(SIDES):
        effects = attenuation(towers[index], texts[index], vectors[1 - index])
        most = max(effect.change for effect in effects)
        words = [Keyword(effect.word, (), False) for effect in effects]
        if read:
            words = keywords(
                read[index], settings.cells, settings.change, settings.share
            )
        rows: list[list[Cell]] = [
            [
                Strong(word.word) if word.keyword else word.word,
                *("-" if n is None else str(n) for n in word.counts),
                Bar(effect.change, most),
                f"{effect.cosine:+.3f}",
            ]
            for word, effect in zip(words, effects, strict=True)
        ]
        directions = _DIRECTIONS[: len(words[0].counts)]
        header = [
            "Word", *directions, "Change of the vector without it",
            "Adds to the cosine",
        ]  # fmt: skip
        bars = [1 + len(directions)]
        tables.append(HtmlTable(header, rows, f"The {side}", text_columns=bars))
    text = (
        "The effect of leaving out a word: 1 - cosine of the vectors with and "
        "without it, and the decrease of the cosine with the other text. The "
        "encoder attenuates the words with short bars."
    )
    if read:
        text = (
            f"Of the {settings.cells} most active cells, how many change at "
            f"the word by {settings.change:g} of their final output or more. "
            "The first word read changes every cell and has no count. Words "
            f"counted by more than {settings.share:.0%} of these cells, in "
            "every direction, are keywords, in bold. Next to the counts: "
            + text[0].lower() + text[1:]
        )  # fmt: skip
    title = "Keywords and attenuation of each word"
    return HtmlSection(title + " (Tables I and II)" * bool(read), tables, text)
