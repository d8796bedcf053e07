"""Charts of a table: bars over systems, and figures on dev by epoch."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_lstm_dssm.drawing import Curve, add_legend, curve_chart, drawing
from keras_lstm_dssm.files import write_csv
from keras_lstm_dssm.tables.dataset import DEV_MEASURES
from keras_lstm_dssm.tables.sheets import TITLES
from keras_lstm_dssm.tables.summary import Figure, Results, Summary

# Colours that differ in lightness too; hatches for print.
_KINDS = {
    "baseline": ("#bbbbbb", ""),
    "feed-forward": ("#e69f00", "//"),
    "recurrent": ("#0072b2", ""),
}


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
    add_legend(axis, 3)


CAPTION = "Figure on dev by epoch"

_SHOWN = ("dssm_in_batch", "clsm_win3_in_batch", "lstm_96", "lstm_96_in_batch",
          "best")  # fmt: skip
"""One of each kind: more would hide one another."""


def draw_dev(
    output: Path, results: Mapping[str, Results], measure: str
) -> Path | None:
    """Writes `dev.png` and `dev.csv`, the means over seeds.

    Args:
        output: Folder of the table.
        results: System -> what was measured.
        measure: What was looked at, see `DataSet.dev_measure`.

    Returns:
        The picture, or None where none of the systems shown has results.
    """
    rows, curves = [], {}
    for name in _SHOWN:
        if name not in results:
            continue
        looks = {
            int(epoch[0]["epoch"]): Figure.of(
                [100 * float(row["dev"]) for row in epoch]
            )
            for epoch in zip(*results[name].history(), strict=True)
            if epoch[0]["dev"]
        }
        means, spreads = zip(*looks.values(), strict=True)
        curves[results[name].row.label] = Curve(list(looks), means, spreads)
        rows += [
            {"system": name, "epoch": epoch, **figure._asdict()}
            for epoch, figure in looks.items()
        ]
    if not rows:
        return None
    write_csv(output / "dev.csv", rows)
    path = output / "dev.png"
    label = f"{measure.upper()} on dev, percent"
    curve_chart(path, curves, "epoch", label)
    return path
