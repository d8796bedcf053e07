"""Charts of a table: bars over systems, and values on dev by epoch."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_lstm_dssm.drawing import Curve, add_legend, curve_chart, drawing
from keras_lstm_dssm.files import write_csv
from keras_lstm_dssm.tables.base_data import CHART_MEASURES
from keras_lstm_dssm.tables.system_results import MeanAndSpread, SystemResults
from keras_lstm_dssm.tables.text_table import MODE_TITLES

# Colours of different lightness, and hatches for print.
_KINDS = {
    "baseline": ("#bbbbbb", ""),
    "feed-forward": ("#e69f00", "//"),
    "recurrent": ("#0072b2", ""),
}


def curve(values: Mapping[int, MeanAndSpread]) -> Curve:
    """Returns a curve of means with their deviations, by position."""
    means, deviations = zip(*values.values(), strict=True)
    return Curve(list(values), means, deviations)


def bar_panels(labels: Sequence[str], columns: int) -> dict[str, Any]:
    """Returns arguments of `drawing` for panels with a bar for each label."""
    size = (3.0 + 3.5 * columns, 1.6 + 0.3 * len(labels))
    return {"columns": columns, "figsize": size}


def bar_chart(path: Path, summary: Mapping[str, Any]) -> None:
    """Draws each system's mean and deviation.

    There is a panel for each mode and each of its `CHART_MEASURES`. Bars
    begin at the value of random order on the same queries.

    Args:
        path: The PNG file to write.
        summary: From `summary.summarise`.
    """
    systems = list(summary["systems"].values())
    panels = [
        (mode, name)
        for mode in summary["random"]
        for name in CHART_MEASURES[mode]
    ]
    labels = [system["label"] for system in systems]
    with drawing(path, **bar_panels(labels, len(panels))) as axes:
        for axis, (mode, name) in zip(axes, panels, strict=True):
            chance = 100 * summary["random"][mode][name]
            for kind, (colour, hatch) in _KINDS.items():
                rows = [
                    i
                    for i, s in enumerate(systems)
                    if s["kind"] == kind and mode in s["test"]
                ]
                values = [systems[i]["test"][mode][name] for i in rows]
                spread = [100 * value["std"] for value in values]
                axis.barh(
                    rows,
                    [100 * value["mean"] - chance for value in values],
                    left=chance,
                    xerr=spread if any(spread) else None,
                    color=colour, hatch=hatch, edgecolor="#222222",
                    linewidth=0.6, capsize=2.5,
                    label=kind if rows else None,
                )  # fmt: skip
            axis.axvline(chance, color="#222222", linewidth=1)
            axis.set_yticks(range(len(labels)), labels)
            axis.set_title(MODE_TITLES[mode], fontsize=10)
            axis.set_xlabel(f"{name.upper()}, percent; bars begin at chance")
            axis.grid(axis="x", color="#dddddd")
            axis.set_axisbelow(True)
        finish_bars(axis)


def finish_bars(axis: Any) -> None:
    """Puts the first system on top and a legend below the chart."""
    axis.margins(y=0.01)
    axis.invert_yaxis()
    add_legend(axis, 3)


def draw_dev_curves(
    output: Path, results: Mapping[str, SystemResults], measure: str
) -> dict[str, Path]:
    """Writes `dev.png` and `dev.csv`, the means over seeds.

    Args:
        output: Folder of the table.
        results: System -> results of neural systems, at most six for a
            legible chart.
        measure: Name of the measure, see `BaseTableData`.

    Returns:
        Caption -> picture; nothing without results.
    """
    rows, curves = [], {}
    for name, result in results.items():
        by_epoch = {e: v.percent for e, v in result.by_epoch("dev").items()}
        curves[result.row.label] = curve(by_epoch)
        rows += [
            {"system": name, "epoch": epoch, **value._asdict()}
            for epoch, value in by_epoch.items()
        ]
    if not rows:
        return {}
    write_csv(output / "dev.csv", rows)
    path = output / "dev.png"
    label = f"{measure.upper()} on dev, percent"
    curve_chart(path, curves, "epoch", label)
    return {"Value on dev by epoch": path}
