"""The report's parts about one query and one title."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from keras_lstm_dssm.analysis.activations import (
    Activations,
    activations,
    is_recurrent,
)
from keras_lstm_dssm.analysis.analysis_page import (
    Html,
    Section,
    bar,
    heading,
    picture,
    strong,
    table,
)
from keras_lstm_dssm.analysis.heat_maps import (
    draw_activations,
    draw_active,
    draw_aligned,
)
from keras_lstm_dssm.analysis.keywords import Keyword, keywords
from keras_lstm_dssm.analysis.report_input import Options
from keras_lstm_dssm.analysis.word_effects import SIDES, attenuation, growth
from keras_lstm_dssm.encoders import BidirectionalLSTMEncoder, TextEncoder

_WAYS = ("Cells, left to right", "Cells, right to left")


def pair_sections(
    model: Any, texts: tuple[str, str], options: Options, folder: Path
) -> Iterator[Section]:
    """Yields the parts; those that need a recurrence only where there is one.

    Args:
        model: A `TwoTower`.
        texts: The query and the title.
        options: Thresholds.
        folder: For the pictures.
    """
    towers = model.query_encoder, model.document_encoder
    read = [
        activations(tower, text)
        for tower, text in zip(towers, texts, strict=True)
        if is_recurrent(*towers)
    ]
    if read:  # no more than there are
        cells = min(options.cells, read[0].y.shape[1])
        options = options._replace(cells=cells)
    yield _together(model, texts, read, options, folder)
    if read:
        yield _gates(read, folder)
        yield _active(read, options, folder)
    yield _words(towers, texts, read, options)


def reading(encoder: TextEncoder) -> str:
    """What the numbers of a bidirectional encoder's cells mean."""
    if not isinstance(encoder, BidirectionalLSTMEncoder):
        return ""
    return (
        f" Cells from {encoder.cells} on read from right to left, and end at "
        "the first word."
    )


def _together(
    model: Any,
    texts: tuple[str, str],
    read: list[Activations],
    options: Options,
    folder: Path,
) -> Section:
    growing = growth(model, *texts)
    path = folder / "aligned.png"
    draw_aligned(path, growing, read, options.cells)
    above = (
        f" Above it, the {options.cells} cells that add most to the final "
        "cosine: a cell of one colour on both sides speaks for the pair, and "
        "the word at which it takes its colour is the one it answers to."
        if read
        else ""
    )
    return Section(
        "The query and the title, word by word",
        "The cosine of one text as it is read, with the whole of the other. "
        "Look for the words at which it jumps, which the pair has in common, "
        "and for those that leave it where it was."
        + above
        + reading(model.query_encoder),
        [picture("Cells and cosine of query and title, by word", path)],
    )


def _gates(read: list[Activations], folder: Path) -> Section:
    every = [one for both in read for one in both.directions]

    def draw(path: Path, found: Activations) -> None:
        draw_activations(path, found, every)

    return Section(
        "Activations (Figs. 4 and 5 of the paper)",
        "Every cell at every word; red is positive, blue negative, white "
        "zero, and white past the last word. All have one range of colours, "
        "which go by the square root, so that small ones show. In c(t) and "
        "y(t) look for what the text leaves behind: a row that keeps its "
        "colour remembers. Where the input gates are pale at a word, the "
        "network lets little of that word in.",
        _pictures(read, folder, "activations", draw),
    )


def _active(read: list[Activations], options: Options, folder: Path) -> Section:
    def draw(path: Path, found: Activations) -> None:
        draw_active(path, found, options.cells)

    return Section(
        f"The {options.cells} most active cells (Fig. 6)",
        "Those with the largest |y| at the end of the text, the most active "
        "on top. A step from one word to the next means that the cell took "
        "up the word; the table below counts these steps.",
        _pictures(read, folder, "active", draw),
    )


def _pictures(
    read: list[Activations],
    folder: Path,
    name: str,
    draw: Callable[[Path, Activations], None],
) -> list[Html]:
    """A picture for each side, and each direction of reading."""
    body = []
    for side, both in zip(SIDES, read, strict=True):
        for found in both.directions:
            path = folder / f"{name}_{side}{'_back' * found.reverse}.png"
            draw(path, found)
            label = f"The {side}" + ", from right to left" * found.reverse
            body += [heading(label), picture(f"{label}: {name}", path)]
    return body


def _words(
    towers: tuple[TextEncoder, TextEncoder],
    texts: tuple[str, str],
    read: list[Activations],
    options: Options,
) -> Section:
    vectors = [
        tower.encode([text])[0]
        for tower, text in zip(towers, texts, strict=True)
    ]
    body: list[Html] = []
    for place, side in enumerate(SIDES):
        other = vectors[1 - place]
        effects = attenuation(towers[place], texts[place], other)
        most = max(effect.change for effect in effects)
        keys = [Keyword(effect.word, (), False) for effect in effects]
        if read:
            keys = keywords(
                read[place], options.cells, options.change, options.share
            )
        rows = [
            [
                strong(key.word) if key.keyword else key.word,
                *("-" if n is None else str(n) for n in key.counts),
                bar(effect.change, most),
                f"{effect.cosine:+.3f}",
            ]
            for key, effect in zip(keys, effects, strict=True)
        ]
        header = [
            "Word",
            *_WAYS[: len(keys[0].counts)],
            "Change of the vector without it",
            "Adds to the cosine",
        ]
        body += [heading(f"The {side}"), table(header, rows)]
    counting = (
        f"Of the {options.cells} most active cells, how many change by "
        f"{options.change:g} of their final activation or more at the word; "
        "the first word read changes every cell and has no count. Keywords, "
        f"in bold, are counted by more than {options.share:.0%} of them in "
        "every direction. "
        if read
        else ""
    )
    return Section(
        "Keywords and attenuation of each word"
        + " (Tables I and II)" * bool(read),
        counting + "Beside it, what happens when the word is left out: 1 - "
        "cosine of the vectors with and without it, and how much of the "
        "cosine with the other text goes. Short bars are words that the "
        "encoder attenuates.",
        body,
    )
