"""The learning curve: the same systems trained on fewer clicks."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

from keras_lstm_dssm.drawing import curve_chart
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import write_csv
from keras_lstm_dssm.tables.base_data import MAIN_MEASURES, BaseTableData
from keras_lstm_dssm.tables.charts import curve
from keras_lstm_dssm.tables.run_systems import run_systems
from keras_lstm_dssm.tables.system_results import (
    MeanAndSpread,
    SystemResults,
    read_results,
)
from keras_lstm_dssm.tables.table_data import TableData, open_table_data
from keras_lstm_dssm.tables.table_settings import TableSettings

_FURTHER_MEASURES = {"retrieve": ("recall@100",)}
"""`"retrieve"`, the search of the whole corpus -> measures that are listed in
`curve.csv`, too. Each chart shows one measure, of `MAIN_MEASURES`."""


def check_pairs(pairs: Sequence[int], data: BaseTableData) -> None:
    """Checks that the log has more clicks than each size of the curve.

    Raises:
        InputError: A size is the number of all clicks or more.

    Example:
    >>> data = open_table_data(TableSettings("parts"), Path("table"))
    >>> try:
    ...     check_pairs([2, 3], data)
    ... except InputError as error:
    ...     print(error)
    --pairs=3: found a log of 3 clicks, expected more, as the table itself has
    all clicks: give fewer
    """
    if not pairs:
        return
    assert isinstance(data, TableData)
    clicks = data.log.count()
    if max(pairs) >= clicks:
        raise InputError(
            f"--pairs={max(pairs)}: found a log of {clicks} clicks, expected"
            " more, as the table itself has all clicks: give fewer"
        )


def run_learning_curve(
    output: Path,
    data: BaseTableData,
    results: Mapping[str, SystemResults],
    settings: TableSettings,
    seeds: int,
    pairs: Sequence[int],
) -> tuple[dict[str, Path], dict[str, str]]:
    """Trains on fewer clicks; writes `curve.csv` and `curve.MODE.png`.

    Systems are trained on each size for as many updates as on all clicks,
    with the hyperparameters that were chosen with all clicks, and the best
    epoch on dev is measured. Each size consists of whole queries in the order
    of a hash, so that a larger one contains a smaller one. The folders
    `pairs/SIZE` are laid out like that of the table.

    Args:
        output: Folder of the table.
        data: The data of the table, with all clicks.
        results: Name -> results of the table. Systems that are trained on
            clicks, and mixtures, are shown as curves, others as horizontal
            lines.
        settings: The table's settings.
        seeds: See `run_system`.
        pairs: The sizes, numbers of clicks; see `check_pairs`.

    Returns:
        Mode -> picture; and "SYSTEM with SIZE clicks" -> reason, for those
        that failed.

    Example:
    >>> from keras_lstm_dssm.tables import Row, open_data, run_system
    >>> settings, output = TableSettings("parts"), Path("curve")
    >>> rows = {"bm25": Row("BM25", seeded=False)}
    >>> run_system(output, "bm25", rows["bm25"], settings, seeds=1)
    bm25, seed 0: ... s, dev ndcg@10 100.00
    >>> data = open_data(settings, output)
    >>> results = read_results(output, rows, seeds=1)
    >>> pictures, failed = run_learning_curve(
    ...     output, data, results, settings, seeds=1, pairs=[2]
    ... )
    >>> list(pictures), failed
    (['rerank', 'retrieve'], {})
    """
    assert isinstance(data, TableData)
    clicks = data.log.count()
    rows = {n: r.row for n, r in results.items()}
    mixtures = [row for row in rows.values() if row.parts]
    parts = {name for mixture in mixtures for name in mixture.parts}
    trained = {
        name: row
        for name, row in rows.items()
        if row.recipe or row.parts or name in parts
    }
    options = {name: results[name].seeds[0]["options"] for name in trained}
    by_size: dict[int, Mapping[str, SystemResults]] = {}
    failed: dict[str, str] = {}
    for size in sorted(pairs):
        folder = output / "pairs" / str(size)
        part_settings = dataclasses.replace(
            settings, pairs=size, updates_of=clicks
        )
        part = open_table_data(part_settings, folder)
        part_settings.record(folder, part.sizes)
        reasons = run_systems(folder, trained, part_settings, seeds, options)
        for name, reason in reasons.items():
            failed[f"{name} with {size} clicks"] = reason
        by_size[part.log.count()] = read_results(folder, trained, seeds)
    # Systems that are not trained on clicks have the same results at any size.
    level = {n: r for n, r in results.items() if n not in trained}
    by_size = {size: {**level, **part} for size, part in by_size.items()}
    by_size[clicks] = results
    pictures = {}
    values = []
    for mode in data.tests:
        measure = MAIN_MEASURES[mode]
        curves: dict[str, dict[int, MeanAndSpread]] = {}
        for size, part_results in by_size.items():
            for name, result in part_results.items():
                value = result.value(mode, measure)
                curves.setdefault(result.row.label, {})[size] = value.percent
                names = {"mode": mode, "system": name, "pairs": size}
                values += [
                    {**names, "measure": m, **result.value(mode, m)._asdict()}
                    for m in (measure, *_FURTHER_MEASURES.get(mode, ()))
                ]
        pictures[mode] = output / f"curve.{mode}.png"
        curve_chart(
            pictures[mode],
            {label: curve(points) for label, points in curves.items()},
            "clicks to train on",
            f"{measure.upper()}, percent ({mode})",
            xscale="log",
        )
    write_csv(output / "curve.csv", values)
    return pictures, failed
