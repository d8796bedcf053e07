"""PaperTable: what is specific to the tables of one paper."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from keras_lstm_dssm.tables.base_data import BaseTableData
from keras_lstm_dssm.tables.rows import Row
from keras_lstm_dssm.tables.summary import Summary
from keras_lstm_dssm.tables.system_results import SystemResults
from keras_lstm_dssm.tables.table_settings import TableSettings


class FinishedSystems(NamedTuple):
    """The systems of a table that were run, for its report.

    Attributes:
        output: Folder of the table.
        data: The data that they were measured on.
        settings: The table's settings.
        seeds: Number of trainings of each system.
        results: System -> its results, at least one, in the table's order.
        failed: System -> reason why it has no result.
        pairs: Sizes of the learning curve, see `run_learning_curve`.

    Example:
    >>> from keras_lstm_dssm.tables import open_data, read_results, run_system
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


Report = Callable[[FinishedSystems], tuple[Summary, dict[str, str]]]
"""Function that writes the report; it returns the content of `table.json`, and
part of the report that failed -> reason."""


def report_by(
    write: Callable[
        [Path, BaseTableData, Mapping[str, SystemResults], Mapping[str, str]],
        Summary,
    ],
) -> Report:
    """Makes a `Report` of a function that only writes the files.

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
    """What is specific to the tables of one paper.

    Attributes:
        title: What the tables are called.
        rows: Name -> row, in the paper's order.
        options: The settings that a user can choose -> their defaults.
        fixed: Further settings.
        report: Function that writes the report.

    Example:
    >>> from keras_lstm_dssm.tables import PAPERS
    >>> PAPERS["table_iv"].rows["bm25"].label
    'BM25'
    """

    title: str
    rows: Mapping[str, Row]
    options: Mapping[str, Any]
    fixed: Mapping[str, Any]
    report: Report
