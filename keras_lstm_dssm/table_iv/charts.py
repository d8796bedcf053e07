"""Charts: bars over systems, and curves; for eyes of all kinds and print."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from keras_lstm_dssm.files import replacing
from keras_lstm_dssm.optional import import_optional
from keras_lstm_dssm.table_iv.dataset import DEV_MEASURES
from keras_lstm_dssm.table_iv.sheets import TITLES
from keras_lstm_dssm.table_iv.summary import Summary

# Okabe and Ito's colours, which differ in lightness too; hatches for print.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_KINDS = {
    "baseline": ("#bbbbbb", ""),
    "feed-forward": ("#e69f00", "//"),
    "recurrent": ("#0072b2", ""),
}
_MARKERS = "osD^vP"


class Curve(NamedTuple):
    """One line of a chart, with the spread of each point."""

    x: Sequence[float]
    y: Sequence[float]
    spread: Sequence[float]


@contextmanager
def drawing(
    path: Path, columns: int = 1, **options: Any
) -> Iterator[list[Any]]:
    """Gives axes side by side; the PNG is written when all went well.

    Raises:
        InputError: matplotlib is not installed.
    """
    matplotlib = import_optional("matplotlib", "analysis")
    figures = import_optional("matplotlib.figure", "analysis")
    with matplotlib.rc_context(
        {"font.size": 10, "axes.spines.top": False, "axes.spines.right": False}
    ):
        # A figure of its own, not pyplot's: no window and no global state.
        figure = figures.Figure(layout="constrained", **options)
        yield figure.subplots(1, columns, sharey=True, squeeze=False)[0]
        with replacing(path) as partial:
            figure.savefig(partial, dpi=150)


def panels(labels: Sequence[str], columns: int) -> dict[str, Any]:
    """Returns a shape for bars: panels side by side, a line for each label."""
    size = (3.0 + 3.5 * columns, 1.6 + 0.3 * len(labels))
    return {"columns": columns, "figsize": size}


def bar_chart(path: Path, summary: Summary) -> None:
    """Draws each system's figure with its spread, a panel for each mode.

    Bars begin at random order, computed on the same queries: what a bar
    shows is what the system adds to chance.
    """
    systems = list(summary["systems"].values())
    modes = list(systems[0]["test"])
    labels = [system["label"] for system in systems]
    with drawing(path, **panels(labels, len(modes))) as axes:
        for axis, mode in zip(axes, modes, strict=True):
            name = DEV_MEASURES[mode]
            chance = 100 * summary["random"][mode][name]
            for kind, (colour, hatch) in _KINDS.items():
                rows = [i for i, s in enumerate(systems) if s["kind"] == kind]
                found = [systems[i]["test"][mode][name] for i in rows]
                spread = [100 * figure["std"] for figure in found]
                axis.barh(
                    rows,
                    [100 * figure["mean"] - chance for figure in found],
                    left=chance,
                    xerr=spread if any(spread) else None,
                    color=colour, hatch=hatch, edgecolor="#222222",
                    linewidth=0.6, capsize=2.5,
                    label=kind if rows else None,
                )  # fmt: skip
            axis.axvline(chance, color="#222222", linewidth=1)
            axis.set_yticks(range(len(labels)), labels)
            axis.set_title(TITLES[mode], fontsize=10)
            axis.set_xlabel(f"{name.upper()}, percent; bars begin at chance")
            axis.grid(axis="x", color="#dddddd")
            axis.set_axisbelow(True)
        finish_bars(axis)


def finish_bars(axis: Any) -> None:
    """Puts the first system on top, and the legend below."""
    axis.margins(y=0.01)
    axis.invert_yaxis()
    _legend(axis, 3)


def _legend(axis: Any, columns: int) -> None:
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
    """Draws named curves with error bars.

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
                marker=_MARKERS[place % len(_MARKERS)], markersize=4,
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
        _legend(axis, 2)
