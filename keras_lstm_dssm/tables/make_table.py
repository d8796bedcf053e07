"""make_table: runs the systems of a table and writes its report."""

from collections.abc import Mapping
from pathlib import Path

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.tables.learning_curve import check_pairs
from keras_lstm_dssm.tables.paper_table import FinishedSystems, PaperTable
from keras_lstm_dssm.tables.rows import Row
from keras_lstm_dssm.tables.run_systems import run_systems
from keras_lstm_dssm.tables.summary import Summary
from keras_lstm_dssm.tables.system_results import read_results
from keras_lstm_dssm.tables.table_data import open_data
from keras_lstm_dssm.tables.table_settings import TableSettings


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
    >>> from keras_lstm_dssm.tables import PAPERS, run_system
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
