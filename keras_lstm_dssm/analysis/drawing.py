"""Draws charts with matplotlib, legible in print and with colour blindness."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_lstm_dssm.analysis.words import (
    ACTIVE_CELLS,
    SIDES,
    Growth,
    active_cells,
)
from keras_lstm_dssm.encoders.activations import Activations
from keras_lstm_dssm.errors import import_optional
from keras_lstm_dssm.files import replacing
from keras_lstm_dssm.pages import DOTS_PER_INCH

# Okabe and Ito's colours can be told apart with colour blindness.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
MARKERS = "osD^vP"
_LEAST_TICKS = 3


class Curve(NamedTuple):
    """A line of a chart; `spread` is the standard deviation at each point."""

    x: Sequence[float]
    y: Sequence[float]
    spread: Sequence[float] | None = None


@contextmanager
def drawing(
    path: Path,
    columns: int = 1,
    widths: Sequence[float] | None = None,  # relative widths of the axes
    **options: Any,  # arguments of matplotlib's `Figure`
) -> Iterator[list[Any]]:
    """Yields `columns` axes side by side, then writes a PNG file."""
    matplotlib = import_optional("matplotlib", "analysis")
    figures = import_optional("matplotlib.figure", "analysis")
    style = {
        "font.size": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "text.parse_math": False,  # dollar signs are part of a user's text
    }
    with matplotlib.rc_context(style):
        # `Figure` is used without pyplot, which keeps figures in global state.
        figure = figures.Figure(layout="constrained", **options)
        yield figure.subplots(
            1, columns, sharey=True, squeeze=False, width_ratios=widths
        )[0]
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as partial:
            figure.savefig(partial, dpi=DOTS_PER_INCH)


def short(text: str) -> str:
    """Cuts a label to 24 characters."""
    return text if len(text) <= 24 else f"{text[:23]}…"


def add_legend(axis: Any, columns: int) -> None:
    """Adds a legend below the figure, with the labels of `axis`."""
    axis.figure.legend(
        *axis.get_legend_handles_labels(),
        loc="outside lower center", ncols=columns, fontsize=8,
    )  # fmt: skip


def curve_chart(
    path: Path,
    curves: Mapping[str, Curve],  # curves by label
    x_label: str,
    y_label: str,
    **scales: Any,
) -> None:
    """Draws curves; `scales` are properties of the axes, such as `yscale`."""
    with drawing(path, figsize=(7, 4.5)) as (axis,):
        for index, (label, curve) in enumerate(curves.items()):
            axis.errorbar(
                curve.x, curve.y, curve.spread, label=label, capsize=2.5,
                color=COLOURS[index % len(COLOURS)],
                marker=MARKERS[index % len(MARKERS)], markersize=4,
                linestyle=("-", "--", ":")[index // len(COLOURS) % 3],
            )  # fmt: skip
        axis.set(xlabel=x_label, ylabel=y_label, **scales)
        axis.grid(color="#dddddd")
        ticks = import_optional("matplotlib.ticker", "analysis")
        if axis.get_xscale() == "log":
            points = sorted({x for curve in curves.values() for x in curve.x})
            axis.set_xticks(points, [f"{x:,g}" for x in points])
            axis.xaxis.set_minor_locator(ticks.NullLocator())
        else:
            axis.xaxis.set_major_locator(ticks.MaxNLocator(integer=True))
        if axis.get_yscale() == "log":  # ticks such as 0.2, not 2 x 10^-1
            axis.yaxis.set_major_locator(ticks.LogLocator(subs=(1, 2, 5)))
            low, high = axis.get_ylim()
            if sum(low <= y <= high for y in axis.get_yticks()) < _LEAST_TICKS:
                axis.yaxis.set_major_locator(ticks.MaxNLocator(5))
            axis.yaxis.set_major_formatter(ticks.StrMethodFormatter("{x:g}"))
            axis.yaxis.set_minor_formatter(ticks.NullFormatter())
        add_legend(axis, 2)


_COLOUR_MAP = "RdBu_r"  # blue below zero, white at zero, red above zero
_AXIS_TITLES = {
    "i": "input gate i(t)",
    "f": "forget gate f(t)",
    "c": "cell state c(t)",
    "o": "output gate o(t)",
    "y": "output y(t)",
}


def draw_activations(
    path: Path, states: Activations, others: Sequence[Activations] = ()
) -> None:
    """Draws gates, states and outputs (Palangi et al. 2016, Figs. 4 and 5)."""
    arrays, networks = states.arrays, [states, *others]
    # This picture shows `states`. Other calls draw the `others`, with the same
    # range of colours and the same number of columns.
    limit = max(
        np.abs(array).max() for n in networks for array in n.arrays.values()
    )
    columns = max(len(n.words) for n in networks)
    colors = import_optional("matplotlib.colors", "analysis")
    # With square roots of values, large c(t) and small y(t) are both visible.
    functions = (
        lambda values: np.sign(values) * np.sqrt(np.abs(values)),
        lambda values: np.sign(values) * np.square(values),
    )
    norm = colors.FuncNorm(functions, -limit, limit)
    width = 1.4 + len(arrays) * max(1.6, 0.32 * columns)
    size = (width, 4.5 + label_height(*(n.words for n in networks)))
    with drawing(path, len(arrays), figsize=size) as axes:
        for axis, (name, array) in zip(axes, arrays.items(), strict=True):
            padded = np.zeros((columns, array.shape[1]))
            padded[: len(array)] = array
            image = heat_map(axis, padded.T, norm=norm)
            label_words(axis, states.words)
            axis.set_title(_AXIS_TITLES[name], fontsize=10)
        # A cell's label is the cell's position in the text's vector.
        axis.yaxis.get_major_locator().set_params(integer=True)
        axis.yaxis.set_major_formatter(lambda y, _: f"{y + states.offset:.0f}")
        axes[0].set_ylabel("cell")
        axis.figure.colorbar(image, ax=axes, shrink=0.6)


def draw_active(
    path: Path, states: Activations, cells: int = ACTIVE_CELLS
) -> None:
    """Draws y(t) of the most active cells (Fig. 6 of Palangi et al. 2016)."""
    most_active = [cell for cell, _ in active_cells(states, cells)]
    height = 0.6 + 0.24 * len(most_active) + label_height(states.words)
    size = (2.4 + 0.5 * len(states.words), height)
    with drawing(path, figsize=size) as (axis,):
        rows = states.y[:, most_active].T
        limit = np.abs(rows).max()
        image = heat_map(axis, rows, vmin=-limit, vmax=limit)
        label_words(axis, states.words)
        numbers = [str(cell + states.offset) for cell in most_active]
        axis.set_yticks(range(len(most_active)), numbers)
        axis.set_ylabel("cell")
        axis.figure.colorbar(image, ax=axis, label="y(t)")


def draw_aligned(
    path: Path,
    growing: Growth,
    states: Sequence[Activations] = (),  # of both texts; `()` draws no cells
    cells: int = ACTIVE_CELLS,
) -> None:
    """Draws the cosine after each word, and y(t) / |y(T)| of some cells.

    The chart shows the `cells` cells that add most to the final cosine. |y(T)|
    is the norm of the final output of all cells.
    """
    sides = (growing.query_words, growing.document_words)
    scaled = []
    for text in states:
        y = np.hstack([network.y for network in text.directions])
        length = float(np.linalg.norm(text.recurrent_vector))
        scaled.append(y / max(length, 1e-12))
    best: list[int] = []
    if scaled:
        products = np.prod([text.recurrent_vector for text in states], axis=0)
        best = np.argsort(-products, kind="stable")[:cells].tolist()
        limit = max(np.abs(rows[:, best]).max() for rows in scaled)
    lines = _lines(growing)
    # Height of the lines below the heat map, in rows of the heat map.
    space = 2 if len(lines) == 1 else 6
    widths = [len(words) for words in sides]
    height = 1.0 + 0.26 * (len(best) + space) + label_height(*sides)
    size = (2.5 + 0.6 * sum(widths), height)
    with drawing(path, 2, widths, figsize=size) as axes:
        for index, axis in enumerate(axes):
            if scaled:
                rows = scaled[index][:, best].T
                image = heat_map(axis, rows, vmin=-limit, vmax=limit)
            _draw_lines(axis, lines, index, len(best), space)
            label_words(axis, sides[index])
            axis.set_title(SIDES[index], fontsize=10)
        labels = [*map(str, best), "cosine"]
        axes[0].set_yticks(
            [*range(len(best)), len(best) + 0.5 + space / 2], labels
        )
        if scaled:
            axes[0].set_ylabel("cell")
            axis.figure.colorbar(image, ax=axes, label="y(t) / |y(T)|")
        if len(lines) > 1:
            add_legend(axis, len(lines))


def heat_map(axis: Any, rows: np.ndarray, **colours: Any) -> Any:
    """Draws a coloured rectangle for each number of `rows`."""
    return axis.imshow(
        rows, _COLOUR_MAP, aspect="auto", interpolation="nearest", **colours
    )


def label_height(*texts: Sequence[str]) -> float:
    """Returns the height in inches of the longest word, written vertically."""
    return 0.12 * max(len(short(word)) for words in texts for word in words)


def label_words(axis: Any, words: Sequence[str]) -> None:
    """Writes a word below each column."""
    axis.set_xticks(range(len(words)), map(short, words), rotation=90)


def _lines(growing: Growth) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Returns label -> values after each word of the query and the title.

    The values are cosines, or what a part of the vector adds to the cosines.
    """
    lines = {"cosine": (growing.query_cosines, growing.document_cosines)}
    if len(growing.parts) > 1:
        for index, name in enumerate(growing.parts):
            values = (
                growing.query_parts[:, index],
                growing.document_parts[:, index],
            )
            if any(np.any(side) for side in values):
                lines[name] = values
    return lines


def _draw_lines(
    axis: Any,
    lines: dict[str, tuple[np.ndarray, np.ndarray]],
    side: int,
    rows: int,
    space: int,
) -> None:
    """Draws the lines of the query (side 0) or title (1) below the heat map."""
    all_values = [values for sides in lines.values() for values in sides]
    lowest = min(values.min() for values in all_values)
    span = max(max(values.max() for values in all_values) - lowest, 1e-6)
    for number, (name, sides) in enumerate(lines.items()):
        values = sides[side]
        heights = rows + space + 0.5 - space * (values - lowest) / span
        axis.plot(
            range(len(values)), heights, label=name, color=COLOURS[number],
            marker=MARKERS[number], markersize=6 if not number else 3,
            linestyle="--" if number else "-", linewidth=1 if number else 1.5,
        )  # fmt: skip
        if not number:
            for word, (height, value) in enumerate(
                zip(heights, values, strict=True)
            ):
                axis.annotate(
                    f"{value:.2f}", (word, height), (0, 6),
                    textcoords="offset points", ha="center", fontsize=8,
                )  # fmt: skip
    axis.set_ylim(rows + space + 1, -0.5)
    axis.set_xlim(-0.5, len(sides[side]) - 0.5)
