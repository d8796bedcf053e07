"""Heat maps of activations: Figs. 4, 5 and 6 of the paper, and both texts."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_lstm_dssm.analysis.activations import Activations
from keras_lstm_dssm.analysis.growth import Growth
from keras_lstm_dssm.analysis.keywords import CELLS, active_cells
from keras_lstm_dssm.table_iv.charts import COLOURS, drawing

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
    path: Path, found: Activations, width: int | None = None
) -> None:
    """Draws i, f, c, o and y of one network, where it has them.

    Figs. 4 and 5 of the paper: cells down, words across, one range of
    colours, zero past the last word.

    Args:
        path: The PNG.
        found: From `activations`.
        width: Columns, for texts to compare; by default one for each word.
    """
    given = found._asdict()
    parts = {n: given[n] for n in _NAMES if given[n] is not None}
    limit = max(np.abs(part).max() for part in parts.values())
    columns = max(width or 0, len(found.words))
    size = (1.4 + len(parts) * max(1.6, 0.32 * columns), 5.2)
    with drawing(path, len(parts), figsize=size) as axes:
        for axis, (name, part) in zip(axes, parts.items(), strict=True):
            padded = np.zeros((columns, part.shape[1]))
            padded[: len(part)] = part
            picture = _heat(axis, padded.T, found.words, limit)
            axis.set_title(_NAMES[name], fontsize=10)
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
    size = (2.4 + 0.5 * len(found.words), 1.4 + 0.24 * len(best))
    with drawing(path, figsize=size) as (axis,):
        rows = found.y[:, best].T
        picture = _heat(axis, rows, found.words, np.abs(rows).max())
        axis.set_yticks(range(len(best)), [str(cell) for cell in best])
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
    size = (3 + 0.8 * max(map(len, sides)), 2.2 + 0.26 * len(best))
    with drawing(path, 2, figsize=size) as axes:
        for place, axis in enumerate(axes):
            if parts:
                rows = [part[:, best].T for part in parts]
                limit = max(np.abs(part).max() for part in rows)
                picture = _heat(axis, rows[place], sides[place], limit)
            _grow(axis, cosines, place, len(best))
            axis.set_xticks(range(len(sides[place])), sides[place], rotation=90)
            axis.set_title(("query", "title")[place], fontsize=10)
        labels = [*map(str, best), "cosine"]
        axes[0].set_yticks([*range(len(best)), len(best) + 1.7], labels)
        if parts:
            axes[0].set_ylabel("cell")
            axis.figure.colorbar(picture, ax=axes, label="y(t) / |y(T)|")


def _heat(
    axis: Any, rows: np.ndarray, words: Sequence[str], limit: float
) -> Any:
    axis.grid(False)
    picture = axis.imshow(
        rows, _MAP, aspect="auto", interpolation="nearest",
        vmin=-limit, vmax=limit,
    )  # fmt: skip
    axis.set_xticks(range(len(words)), words, rotation=90)
    return picture


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
