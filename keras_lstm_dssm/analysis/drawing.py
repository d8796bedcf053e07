"""Charts with matplotlib, legible in print and with colour blindness."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from keras_lstm_dssm.errors import import_optional
from keras_lstm_dssm.files import replacing
from keras_lstm_dssm.pages import DOTS_PER_INCH

# Okabe and Ito's colours, distinguishable with colour blindness and by
# lightness alone.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
MARKERS = "osD^vP"
_LEAST_TICKS = 3  # fewer do not tell the scale of an axis


class Curve(NamedTuple):
    """One line of a chart; `spread` is the standard deviation at each point."""

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
    """Opens axes side by side to draw on, and writes them to a PNG file.

    The file is written when the `with` block ends without an exception; its
    folder is created if there is none. The axes share the vertical one and have
    relative `widths`; `options` are those of matplotlib's `Figure`.
    """
    matplotlib = import_optional("matplotlib", "analysis")
    figures = import_optional("matplotlib.figure", "analysis")
    style = {
        "font.size": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "text.parse_math": False,  # a user's text may contain dollar signs
    }
    with matplotlib.rc_context(style):
        # Not made by pyplot, which would keep it in global state.
        figure = figures.Figure(layout="constrained", **options)
        yield figure.subplots(
            1, columns, sharey=True, squeeze=False, width_ratios=widths
        )[0]
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as partial:
            figure.savefig(partial, dpi=DOTS_PER_INCH)


def short(text: str) -> str:
    """Cuts a label to a length that leaves room for the picture."""
    return text if len(text) <= 24 else f"{text[:23]}…"


def add_legend(axis: Any, columns: int) -> None:
    """Adds one legend, with the labels of these axes, below the figure."""
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
    """Draws curves by their labels, with error bars where they have a spread.

    `scales` are properties of the axes, such as `xscale="log"`.
    """
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
