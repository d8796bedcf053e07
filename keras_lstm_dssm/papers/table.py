"""Makes a paper's tables: measures systems; writes curves and a report."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

from keras_lstm_dssm.analysis.drawing import curve_chart
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.task import MAIN_MEASURES
from keras_lstm_dssm.files import write_csv
from keras_lstm_dssm.papers.baseline_rows import Hybrid, Mixed
from keras_lstm_dssm.papers.keyvec import KEYVEC_TABLE
from keras_lstm_dssm.papers.mv_lstm import MV_LSTM_TABLE
from keras_lstm_dssm.papers.neural_rows import Neural
from keras_lstm_dssm.papers.report import (
    MeanAndSpread,
    PaperTable,
    Summary,
    SystemResults,
    curve,
    draw_dev_curves,
    read_results,
    summarise,
    write_table,
)
from keras_lstm_dssm.papers.run_systems import Row, run_systems
from keras_lstm_dssm.papers.table_data import TableData, open_data
from keras_lstm_dssm.papers.table_iv import FEW_CLICKS, TABLE_IV
from keras_lstm_dssm.settings.programs import TableSettings

PAPERS = {
    "table_iv": TABLE_IV,
    "mv_lstm": MV_LSTM_TABLE,
    "keyvec": KEYVEC_TABLE,
    "few_clicks": FEW_CLICKS,
}
"""Value of the flag `--paper` -> declaration of the tables."""

_FURTHER_MEASURES = {"retrieve": ("recall@100",)}
"""Mode -> measures in `curve.csv` besides the mode's main measure."""


def check_pairs(pairs: Sequence[int], data: TableData) -> None:
    """Checks that the log has more clicks than each number in `pairs`."""
    if pairs and max(pairs) >= (clicks := data.sizes["clicks"]):
        raise InputError(
            f"--pairs={max(pairs)}: found a log of {clicks} clicks, expected"
            " a larger log, because the learning curve ends with all clicks:"
            " give smaller --pairs"
        )


def run_learning_curve(
    data: TableData,
    results: Mapping[str, SystemResults],
    seeds: int,
    pairs: Sequence[int],  # numbers of clicks to train on
) -> tuple[dict[str, Path], dict[str, str]]:  # pictures, reasons of failures
    """Trains on fewer clicks; plots measures against the number of clicks."""
    output, settings = data.folder, data.settings
    clicks = data.sizes["clicks"]
    rows = {name: result.row for name, result in results.items()}
    parts = {
        part
        for row in rows.values()
        if isinstance(row.system, Mixed | Hybrid) and row.system.seeded
        for part in row.system.parts
    }
    trained = {
        name: row
        for name, row in rows.items()
        if isinstance(row.system, Neural | Mixed | Hybrid)
        and row.system.seeded
        or name in parts
    }
    options = {name: results[name].seeds[0]["options"] for name in trained}
    by_size: dict[int, Mapping[str, SystemResults]] = {}
    failed: dict[str, str] = {}
    for size in sorted(pairs):
        folder = output / "pairs" / str(size)
        # Neural systems make as many updates as in training on all clicks.
        size_settings = dataclasses.replace(
            settings, pairs=size, updates_of=clicks
        )
        size_data = open_data(size_settings, folder)
        size_settings.record(folder, size_data.sizes)
        reasons = run_systems(folder, trained, size_settings, seeds, options)
        for name, reason in reasons.items():
            failed[f"{name} with {size} clicks"] = reason
        actual_size = size_data.sizes["clicks"]
        by_size[actual_size] = read_results(folder, trained, seeds)
    # Systems outside `trained` have the same results at all sizes.
    fixed = {n: r for n, r in results.items() if n not in trained}
    by_size = {size: {**fixed, **learnt} for size, learnt in by_size.items()}
    by_size[clicks] = results
    pictures = {}
    values = []
    for mode in data.tests:
        measure = MAIN_MEASURES[mode]
        curves: dict[str, dict[int, MeanAndSpread]] = {}
        for size, size_results in by_size.items():
            for name, result in size_results.items():
                value = result.value(mode, measure)
                curves.setdefault(result.row.label, {})[size] = value.percent
                names = {"mode": mode, "system": name, "pairs": size}
                values += [
                    {**names, "measure": m, **result.value(mode, m)._asdict()}
                    for m in (measure, *_FURTHER_MEASURES.get(mode, ()))
                ]
        path = output / f"curve.{mode}.png"
        pictures[f"Learning curve, {mode}"] = path
        curve_chart(
            path,
            {label: curve(points) for label, points in curves.items()},
            "clicks to train on",
            f"{measure.upper()}, percent ({mode})",
            xscale="log",
        )
    write_csv(output / "curve.csv", values)
    return pictures, failed


def make_table(
    output: Path,
    paper: PaperTable,
    rows: Mapping[str, Row],
    settings: TableSettings,
    seeds: int,
    pairs: tuple[int, ...] = (),
) -> tuple[Summary, dict[str, str]]:
    """Runs the unfinished systems of a table, and writes the table's report."""
    for name, row in rows.items():
        if "teacher" in (name, *getattr(row.system, "parts", ())):
            settings.teacher_folder()  # raises now, not after hours of training
    data = open_data(settings, output)
    check_pairs(pairs, data)
    settings.record(output, data.sizes)
    for name in [name for name, row in rows.items() if not row.tests(data)]:
        print(f"{name}: left out, has no vectors to cluster", flush=True)
    rows = {name: row for name, row in rows.items() if row.tests(data)}
    failed = run_systems(output, rows, settings, seeds)
    results = read_results(output, rows, seeds)
    if not results:
        raise InputError(
            f"{output}: no system could be measured ({reasons(failed)})"
        )
    curves: dict[str, Path] = {}
    if pairs:
        curves, failed_parts = run_learning_curve(data, results, seeds, pairs)
        failed |= failed_parts
    pictures, failed_pictures = paper.pictures(output, data, results)
    failed |= failed_pictures
    summary = summarise(
        output, data, results, failed, paper.references(results),
        paper.compared,
    )  # fmt: skip
    paper.further(summary, results)
    drawn = {n: results[n] for n in paper.curves(results) if n in results}
    pictures |= draw_dev_curves(output, drawn, data.dev_measure)
    write_table(output, paper, summary, pictures | curves)
    return summary, failed


def reasons(failed: Mapping[str, str]) -> str:
    """Formats what failed, and why, in one line."""
    return "; ".join(f"{name}: {reason}" for name, reason in failed.items())
