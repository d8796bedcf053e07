"""The learning curve: the same systems with fewer clicks to learn from."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

from keras_lstm_dssm.drawing import Curve, curve_chart
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import write_csv
from keras_lstm_dssm.tables.dataset import (
    DEV_MEASURES,
    DataSet,
    open_dataset,
)
from keras_lstm_dssm.tables.isolated import run_isolated
from keras_lstm_dssm.tables.summary import Figure, Results, read_results
from keras_lstm_dssm.tables.table_settings import Settings


def check_pairs(pairs: Sequence[int], data: DataSet) -> None:
    """Checks, before the work, that there are more clicks than each size.

    Raises:
        InputError: There are not.
    """
    clicks = data.log.count()
    if max(pairs, default=0) >= clicks:
        raise InputError(
            f"--pairs={max(pairs)}: the log has {clicks} clicks, which the"
            " table itself shows; give fewer"
        )


def learning_curve(
    output: Path,
    data: DataSet,
    results: Mapping[str, Results],
    settings: Settings,
    seeds: int,
    pairs: Sequence[int],
) -> dict[str, Path]:
    """Trains on about so many clicks; writes `curve.csv`, `curve.MODE.png`.

    Every size gets as many updates as the whole log, with the options chosen
    on it, and keeps its best epoch on dev. Sizes are whole queries by a
    fixed hash, so that a smaller one is part of a larger one. Results are
    kept in `pairs/SIZE`, in the form of the table's own.

    Args:
        output: Folder of the table.
        data: All clicks.
        results: The table's systems; those that learn from clicks are shown
            as curves, the others as level lines.
        settings: The table's.
        seeds: See `run_job`.
        pairs: The sizes; see `check_pairs`.

    Returns:
        Mode -> picture.
    """
    clicks = data.log.count()
    towers = [name for name, found in results.items() if found.row.recipe]
    options = {name: results[name].seeds[0]["options"] for name in towers}
    points: dict[int, Mapping[str, Results]] = {}
    for size in sorted(pairs):
        folder = output / "pairs" / str(size)
        some = dataclasses.replace(settings, pairs=size)
        part = open_dataset(some, folder)
        some = dataclasses.replace(
            some, epochs=round(settings.epochs * clicks / part.log.count())
        )
        some.record(folder, part.sizes)
        run_isolated(folder, towers, some, seeds, options)
        points[part.log.count()] = read_results(folder, towers, seeds)
    # What does not learn from clicks is as good with any number of them.
    level = {name: f for name, f in results.items() if name not in towers}
    points = {size: {**level, **found} for size, found in points.items()}
    points[clicks] = results
    pictures = {}
    rows = []
    for mode in data.tests:
        curves: dict[str, dict[int, Figure]] = {}
        for size, found in points.items():
            for name, result in found.items():
                figure = result.figure(mode, DEV_MEASURES[mode])
                curves.setdefault(result.row.label, {})[size] = figure
                rows.append(
                    {
                        "mode": mode, "system": name, "pairs": size,
                        "measure": DEV_MEASURES[mode], **figure._asdict(),
                    }
                )  # fmt: skip
        pictures[mode] = output / f"curve.{mode}.png"
        curve_chart(
            pictures[mode],
            {label: _percent(curve) for label, curve in curves.items()},
            "clicks to learn from",
            f"{DEV_MEASURES[mode].upper()}, percent ({mode})",
            xscale="log",
        )
    write_csv(output / "curve.csv", rows)
    return pictures


def _percent(figures: Mapping[int, Figure]) -> Curve:
    return Curve(
        list(figures),
        [100 * figure.mean for figure in figures.values()],
        [100 * figure.std for figure in figures.values()],
    )
