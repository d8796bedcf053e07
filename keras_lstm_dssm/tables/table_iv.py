"""TABLE_IV: Table IV of Palangi et al. 2016, and what belongs to it."""

from pathlib import Path

from keras_lstm_dssm.settings.papers import PAPER_OPTIONS
from keras_lstm_dssm.tables.figure_7 import train_with_one_gamma
from keras_lstm_dssm.tables.learning_curve import run_learning_curve
from keras_lstm_dssm.tables.paper_table import FinishedSystems, PaperTable
from keras_lstm_dssm.tables.summary import Summary
from keras_lstm_dssm.tables.table_iv_report import write_report
from keras_lstm_dssm.tables.table_iv_rows import TABLE_IV_ROWS


def _report(work: FinishedSystems) -> tuple[Summary, dict[str, str]]:
    """Makes the learning curve, Figure 7 and the report."""
    output, data, settings = work.output, work.data, work.settings
    failed = dict(work.failed)
    pictures: dict[str, Path] = {}
    if work.pairs:
        curves, failed_parts = run_learning_curve(
            output, data, work.results, settings, work.seeds, work.pairs
        )
        failed |= failed_parts
        pictures = {f"Learning curve, {m}": path for m, path in curves.items()}
    costs, failed_costs = train_with_one_gamma(
        output, work.results, settings, data.sizes
    )
    failed |= {f"{name} of Figure 7": r for name, r in failed_costs.items()}
    return (
        write_report(output, data, work.results, failed, costs, pictures),
        failed,
    )


TABLE_IV = PaperTable(
    title="Table IV of Palangi et al. 2016",
    rows=TABLE_IV_ROWS,
    options=PAPER_OPTIONS["table_iv"],
    fixed={},
    report=_report,
)
