"""Heat maps of activations: Figs. 4, 5 and 6 of the paper, and both texts."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_lstm_dssm.analysis.activations import Activations
from keras_lstm_dssm.analysis.keywords import CELLS, active_cells
from keras_lstm_dssm.analysis.word_effects import SIDES, Growth
from keras_lstm_dssm.drawing import COLOURS, drawing, short
from keras_lstm_dssm.errors import import_optional

# Blue to red through white, which is zero: told apart by eyes that do not
# see red or green as others do, and dark at both ends in print.
_MAP = "RdBu_r"
_NAMES = {
    "i": "input gate i(t)",
    "f": "forget gate f(t)",
    "c": "cell state c(t)",
    "o": "output gate o(t)",
    "y": "output y(t)",
}


def draw_activations(
    path: Path, found: Activations, beside: Sequence[Activations] = ()
) -> None:
    """Draws i, f, c, o and y of one network, where it has them.

    Figs. 4 and 5 of the paper: cells down, words across, one range of
    colours, zero past the last word.

    Args:
        path: The PNG.
        found: From `activations`.
        beside: Others that it will be compared with: they have the same
            range of colours, and as many columns as the longest has words.
    """
    parts, shown = found.arrays, [found, *beside]
    limit = max(np.abs(p).max() for one in shown for p in one.arrays.values())
    columns = max(len(one.words) for one in shown)
    colors = import_optional("matplotlib.colors", "analysis")
    # By the root: c(t) may be ten times y(t), and both shall be seen.
    norm = colors.FuncNorm((_root, _square), -limit, limit)
    width = 1.4 + len(parts) * max(1.6, 0.32 * columns)
    size = (width, 4.5 + _room(*(one.words for one in shown)))
    with drawing(path, len(parts), figsize=size) as axes:
        for axis, (name, part) in zip(axes, parts.items(), strict=True):
            padded = np.zeros((columns, part.shape[1]))
            padded[: len(part)] = part
            picture = _heat(axis, padded.T, norm=norm)
            _label(axis, found.words)
            axis.set_title(_NAMES[name], fontsize=10)
        # Cells are numbered by their places in the sentence vector.
        axis.yaxis.get_major_locator().set_params(integer=True)
        axis.yaxis.set_major_formatter(lambda y, _: f"{y + found.offset:.0f}")
        axes[0].set_ylabel("cell")
        axis.figure.colorbar(picture, ax=axes, shrink=0.6)


def draw_active(path: Path, found: Activations, cells: int = CELLS) -> None:
    """Draws y(t) of the most active cells over the words, Fig. 6.

    Args:
        path: The PNG.
        found: From `activations`.
        cells: How many, the most active on top.
    """
    best = [one.cell for one in active_cells(found, cells)]
    height = 0.6 + 0.24 * len(best) + _room(found.words)
    size = (2.4 + 0.5 * len(found.words), height)
    with drawing(path, figsize=size) as (axis,):
        rows = found.y[:, best].T
        limit = np.abs(rows).max()
        picture = _heat(axis, rows, vmin=-limit, vmax=limit)
        _label(axis, found.words)
        numbers = [str(cell + found.offset) for cell in best]
        axis.set_yticks(range(len(best)), numbers)
        axis.set_ylabel("cell")
        axis.figure.colorbar(picture, ax=axis, label="y(t)")


def draw_aligned(
    path: Path,
    growing: Growth,
    read: Sequence[Activations] = (),
    cells: int = CELLS,
) -> None:
    """Draws a query and a title side by side, and their cosine as it grows.

    Above, the cells that add most to the final cosine, the same ones for
    both, in units of each text's final vector; below, the cosine with the
    whole of the other text after each word.

    Args:
        path: The PNG.
        growing: From `growth`.
        read: Activations of the query and of the title; without them only
            the cosine is drawn.
        cells: How many.
    """
    sides = (growing.query, growing.document)
    cosines = (growing.by_query, growing.by_document)
    parts = [_units(one) for one in read]
    best: list[int] = []
    if parts:
        products = np.prod([one.vector for one in read], axis=0)
        best = np.argsort(-products, kind="stable")[:cells].tolist()
        limit = max(np.abs(part[:, best]).max() for part in parts)
    widths = [len(words) for words in sides]
    height = 1.5 + 0.26 * len(best) + _room(*sides)
    size = (2.5 + 0.6 * sum(widths), height)
    with drawing(path, 2, widths, figsize=size) as axes:
        for place, axis in enumerate(axes):
            if parts:
                rows = parts[place][:, best].T
                picture = _heat(axis, rows, vmin=-limit, vmax=limit)
            _grow(axis, cosines, place, len(best))
            _label(axis, sides[place])
            axis.set_title(SIDES[place], fontsize=10)
        labels = [*map(str, best), "cosine"]
        axes[0].set_yticks([*range(len(best)), len(best) + 1.7], labels)
        if parts:
            axes[0].set_ylabel("cell")
            axis.figure.colorbar(picture, ax=axes, label="y(t) / |y(T)|")


def _heat(axis: Any, rows: np.ndarray, **colours: Any) -> Any:
    return axis.imshow(
        rows, _MAP, aspect="auto", interpolation="nearest", **colours
    )


def _room(*texts: Sequence[str]) -> float:
    """Inches that the words take below the picture."""
    return 0.12 * max(len(short(word)) for words in texts for word in words)


def _label(axis: Any, words: Sequence[str]) -> None:
    axis.set_xticks(range(len(words)), map(short, words), rotation=90)


def _root(values: np.ndarray) -> np.ndarray:
    return np.sign(values) * np.sqrt(np.abs(values))


def _square(values: np.ndarray) -> np.ndarray:
    return np.sign(values) * np.square(values)


def _grow(
    axis: Any, cosines: Sequence[np.ndarray], place: int, below: int
) -> None:
    """Draws the cosine as a line under so many rows of cells.

    It has the same axes, so that each figure stands under its word.
    """
    both = np.concatenate(cosines)
    span = max(both.max() - both.min(), 1e-6)
    heights = below + 2.5 - 2 * (cosines[place] - both.min()) / span
    words = range(len(heights))
    axis.plot(words, heights, marker="o", color=COLOURS[0])
    for word, height, cosine in zip(
        words, heights, cosines[place], strict=True
    ):
        axis.annotate(
            f"{cosine:.2f}", (word, height), (0, 6),
            textcoords="offset points", ha="center", fontsize=8,
        )  # fmt: skip
    axis.set_ylim(below + 3, -0.5)
    axis.set_xlim(-0.5, len(heights) - 0.5)


def _units(found: Activations) -> np.ndarray:
    """y(t) of both directions, `[words, dimension]`, over |y(T)|."""
    y = np.hstack([one.y for one in found.directions])
    return y / max(float(np.linalg.norm(found.vector)), 1e-12)
