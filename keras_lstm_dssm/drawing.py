"""Drawing: figures for eyes of all kinds and for print, and curves."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from keras_lstm_dssm.errors import import_optional
from keras_lstm_dssm.files import replacing

# Okabe and Ito's colours, which differ in lightness too; markers for print.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
MARKERS = "osD^vP"


class Curve(NamedTuple):
    """One line of a chart, with the spread of each point if any."""

    x: Sequence[float]
    y: Sequence[float]
    spread: Sequence[float] | None = None


@contextmanager
def drawing(
    path: Path,
    columns: int = 1,
    widths: Sequence[float] | None = None,
    **options: Any,
) -> Iterator[list[Any]]:
    """Gives axes side by side; the PNG is written when all went well.

    Args:
        path: The PNG.
        columns: How many axes; they share y.
        widths: Of the axes, in proportion; by default all the same.
        **options: Of matplotlib's `Figure`, such as `figsize=(7, 4.5)`.

    Raises:
        InputError: matplotlib is not installed.

    Example:
    >>> with drawing(Path("line.png")) as (axis,):
    ...     axis.plot([1, 2, 3])
    """
    matplotlib = import_optional("matplotlib", "analysis")
    figures = import_optional("matplotlib.figure", "analysis")
    style = {
        "font.size": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "text.parse_math": False,  # users' words may hold dollar signs
    }
    with matplotlib.rc_context(style):
        # A figure of its own, not pyplot's: no window and no global state.
        figure = figures.Figure(layout="constrained", **options)
        yield figure.subplots(
            1, columns, sharey=True, squeeze=False, width_ratios=widths
        )[0]
        with replacing(path) as partial:
            figure.savefig(partial, dpi=150)


def short(text: str, most: int = 24) -> str:
    """Cuts a label, which might leave no room for the picture."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def add_legend(axis: Any, columns: int) -> None:
    """Puts one legend, of these axes, below the whole figure."""
    axis.figure.legend(
        *axis.get_legend_handles_labels(),
        loc="outside lower center", ncols=columns, fontsize=8,
    )  # fmt: skip


def curve_chart(
    path: Path,
    curves: Mapping[str, Curve],
    x_label: str,
    y_label: str,
    **scales: Any,
) -> None:
    """Draws named curves, with error bars where they have a spread.

    Args:
        path: The PNG.
        curves: Label -> curve.
        x_label: What x is.
        y_label: What y is.
        **scales: Of the axes, such as `xscale="log"`.
    """
    with drawing(path, figsize=(7, 4.5)) as (axis,):
        for place, (label, curve) in enumerate(curves.items()):
            axis.errorbar(
                curve.x, curve.y, curve.spread, label=label, capsize=2.5,
                color=COLOURS[place % len(COLOURS)],
                marker=MARKERS[place % len(MARKERS)], markersize=4,
                linestyle=("-", "--", ":")[place // len(COLOURS) % 3],
            )  # fmt: skip
        axis.set(xlabel=x_label, ylabel=y_label, **scales)
        axis.grid(color="#dddddd")
        ticks = import_optional("matplotlib.ticker", "analysis")
        if axis.get_xscale() == "log":
            measured = sorted({x for curve in curves.values() for x in curve.x})
            axis.set_xticks(measured, [f"{x:,g}" for x in measured])
            axis.xaxis.set_minor_locator(ticks.NullLocator())
        else:
            axis.xaxis.set_major_locator(ticks.MaxNLocator(integer=True))
        if axis.get_yscale() == "log":  # 0.2, not 2 x 10^-1
            axis.yaxis.set_major_locator(ticks.LogLocator(subs=(1, 2, 5)))
            axis.yaxis.set_major_formatter(ticks.StrMethodFormatter("{x:g}"))
            axis.yaxis.set_minor_formatter(ticks.NullFormatter())
        add_legend(axis, 2)
