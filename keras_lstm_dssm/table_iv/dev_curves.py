"""Curves: what the towers had learnt on dev, epoch by epoch."""

from collections.abc import Mapping
from pathlib import Path

from keras_lstm_dssm.drawing import Curve, curve_chart
from keras_lstm_dssm.table_iv.csv_files import write_csv
from keras_lstm_dssm.table_iv.results import Figure, Results

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
