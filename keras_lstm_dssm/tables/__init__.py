"""Compares systems on one data set: tunes, trains, evaluates, reports.

`table_iv_rows.py`, `table_iv_report.py` and `figure_7.py` are specific to
Palangi et al. 2016. The other modules can make any table.
"""

from keras_lstm_dssm.tables.figure_7 import train_with_one_gamma
from keras_lstm_dssm.tables.learning_curve import (
    check_pairs,
    run_learning_curve,
)
from keras_lstm_dssm.tables.rows import Row, choose_rows
from keras_lstm_dssm.tables.run_systems import run_system, run_systems
from keras_lstm_dssm.tables.system_results import SystemResults, read_results
from keras_lstm_dssm.tables.table_data import TableData, open_table_data
from keras_lstm_dssm.tables.table_iv_report import write_report
from keras_lstm_dssm.tables.table_iv_rows import TABLE_IV_ROWS
from keras_lstm_dssm.tables.table_settings import TableSettings

__all__ = [
    "TABLE_IV_ROWS",
    "Row",
    "SystemResults",
    "TableData",
    "TableSettings",
    "check_pairs",
    "choose_rows",
    "run_learning_curve",
    "open_table_data",
    "read_results",
    "run_system",
    "run_systems",
    "train_with_one_gamma",
    "write_report",
]
