"""A table from its rows to its report, and the learning curve.

`PaperTable` declares what is specific to one paper. The learning curve
measures the same systems trained on fewer clicks.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from keras_lstm_dssm.analysis.drawing import curve_chart
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import write_csv
from keras_lstm_dssm.papers.report import curve
from keras_lstm_dssm.papers.results import (
    MeanAndSpread,
    Summary,
    SystemResults,
    read_results,
)
from keras_lstm_dssm.papers.rows import Row
from keras_lstm_dssm.papers.run_systems import run_systems
from keras_lstm_dssm.papers.table_data import (
    MAIN_MEASURES,
    BaseTableData,
    TableData,
    open_data,
    open_table_data,
)
from keras_lstm_dssm.settings.papers import TableSettings

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
    >>> from keras_lstm_dssm.papers import Row, open_data, run_system
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


class FinishedSystems(NamedTuple):
    """Holds the results of a table's systems, from which its report is made.

    Attributes:
        output: Folder of the table.
        data: The data that they were measured on.
        settings: The table's settings.
        seeds: Number of trainings of each system.
        results: System -> its results, at least one, in the table's order.
        failed: System -> reason why it has no result.
        pairs: Sizes of the learning curve, see `run_learning_curve`.

    Example:
    >>> from keras_lstm_dssm.papers import open_data, read_results, run_system
    >>> settings, output = TableSettings("parts"), Path("finished")
    >>> rows = {"bm25": Row("BM25", seeded=False)}
    >>> run_system(output, "bm25", rows["bm25"], settings, seeds=1)
    bm25, seed 0: ... s, dev ndcg@10 100.00
    >>> results = read_results(output, rows, seeds=1)
    >>> data = open_data(settings, output)
    >>> FinishedSystems(output, data, settings, 1, results, failed={}).pairs
    ()
    """

    output: Path
    data: BaseTableData
    settings: TableSettings
    seeds: int
    results: Mapping[str, SystemResults]
    failed: Mapping[str, str]
    pairs: tuple[int, ...] = ()


def learning_curve(
    work: FinishedSystems,
) -> tuple[dict[str, Path], dict[str, str]]:
    """Runs the learning curve of a table, if it has sizes.

    Returns:
        Caption -> picture; and what failed -> reason, with the failed systems
        of the table itself.
    """
    if not work.pairs:
        return {}, dict(work.failed)
    pictures, failed = run_learning_curve(
        work.output,
        work.data,
        work.results,
        work.settings,
        work.seeds,
        work.pairs,
    )
    captions = {f"Learning curve, {m}": path for m, path in pictures.items()}
    return captions, {**work.failed, **failed}


Report = Callable[[FinishedSystems], tuple[Summary, dict[str, str]]]
"""Function that writes the report; it returns the content of `table.json`, and
part of the report that failed -> reason."""


def report_by(
    write: Callable[
        [Path, BaseTableData, Mapping[str, SystemResults], Mapping[str, str]],
        Summary,
    ],
) -> Report:
    """Wraps a function that writes the files of a report as a `Report`.

    The failed parts of the report are then the failed systems.

    Args:
        write: Function of `output`, `data`, `results` and `failed` of
            `FinishedSystems` that returns the content of `table.json`.
    """

    def report(work: FinishedSystems) -> tuple[Summary, dict[str, str]]:
        failed = dict(work.failed)
        return write(work.output, work.data, work.results, failed), failed

    return report


class PaperTable(NamedTuple):
    """Describes the tables of one paper: rows, settings and report.

    Attributes:
        title: What the tables are called.
        rows: Name -> row, in the paper's order.
        options: The settings that a user can choose -> their defaults.
        fixed: Further settings.
        report: Function that writes the report.

    Example:
    >>> from keras_lstm_dssm.papers import PAPERS
    >>> PAPERS["table_iv"].rows["bm25"].label
    'BM25'
    """

    title: str
    rows: Mapping[str, Row]
    options: Mapping[str, Any]
    fixed: Mapping[str, Any]
    report: Report


def make_table(
    output: Path,
    paper: PaperTable,
    rows: Mapping[str, Row],
    settings: TableSettings,
    seeds: int,
    pairs: tuple[int, ...] = (),
) -> tuple[Summary, dict[str, str]]:
    """Runs the unfinished systems of a table, and writes its report.

    Args:
        output: Folder of the table.
        paper: The paper whose table it is.
        rows: Name -> row of the systems to run.
        settings: The table's settings.
        seeds: Number of trainings of each system.
        pairs: Sizes of the learning curve; see `run_learning_curve`.

    Returns:
        The content of `table.json`, and what failed -> reason.

    Raises:
        InputError: The data or the settings are wrong, or no system could be
            measured.

    Example:
    >>> from keras_lstm_dssm.papers import PAPERS, run_system
    >>> settings, output = TableSettings("parts"), Path("made")
    >>> rows, paper = {"bm25": Row("BM25", seeded=False)}, PAPERS["table_iv"]
    >>> run_system(output, "bm25", rows["bm25"], settings, seeds=1)
    bm25, seed 0: ... s, dev ndcg@10 100.00
    >>> summary, failed = make_table(output, paper, rows, settings, seeds=1)
    bm25: finished before
    >>> summary["systems"]["bm25"]["test"]["retrieve"]["mrr@10"]["mean"], failed
    (1.0, {})
    >>> (output / "table.html").exists()
    True
    """
    if any(r.taught or "teacher" in (n, *r.parts) for n, r in rows.items()):
        settings.teacher_folder()  # raises before hours of other systems
    data = open_data(settings, output)
    check_pairs(pairs, data)
    settings.record(output, data.sizes)
    for name in [name for name in rows if not data.tests_of(rows[name])]:
        print(f"{name}: left out, has no vectors to cluster", flush=True)
    rows = {n: row for n, row in rows.items() if data.tests_of(row)}
    failed = run_systems(output, rows, settings, seeds)
    results = read_results(output, rows, seeds)
    if not results:
        raise InputError(
            f"{output}: no system could be measured ({reasons(failed)})"
        )
    return paper.report(
        FinishedSystems(output, data, settings, seeds, results, failed, pairs)
    )


def reasons(failed: Mapping[str, str]) -> str:
    """Formats what failed, and why, in one line.

    Example:
    >>> reasons({"plsa": "out of memory", "lstm": "was killed"})
    'plsa: out of memory; lstm: was killed'
    """
    return "; ".join(f"{name}: {reason}" for name, reason in failed.items())
