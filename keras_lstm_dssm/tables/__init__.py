"""Compares systems on one data set: tunes, trains, evaluates, reports.

`table_iv*.py` and `figure_7.py` are specific to Palangi et al. 2016,
`mv_lstm*.py` to Wan et al. 2016, `keyvec*.py` to Bi and Ma 2017. The other
modules can make any table.
"""

from keras_lstm_dssm.settings.papers import PAPER_ALIASES
from keras_lstm_dssm.tables.figure_7 import train_with_one_gamma
from keras_lstm_dssm.tables.keyvec_report import write_keyvec_report
from keras_lstm_dssm.tables.keyvec_rows import KEYVEC_ROWS
from keras_lstm_dssm.tables.learning_curve import (
    check_pairs,
    run_learning_curve,
)
from keras_lstm_dssm.tables.make_table import make_table, reasons
from keras_lstm_dssm.tables.mv_lstm_report import write_mv_lstm_report
from keras_lstm_dssm.tables.mv_lstm_rows import MV_LSTM_ROWS
from keras_lstm_dssm.tables.overview import write_overview
from keras_lstm_dssm.tables.paper_table import FinishedSystems, PaperTable
from keras_lstm_dssm.tables.papers import PAPERS
from keras_lstm_dssm.tables.rows import Row, choose_rows
from keras_lstm_dssm.tables.run_systems import run_system, run_systems
from keras_lstm_dssm.tables.summary import Summary
from keras_lstm_dssm.tables.system_results import SystemResults, read_results
from keras_lstm_dssm.tables.table_data import (
    TableData,
    open_data,
    open_table_data,
)
from keras_lstm_dssm.tables.table_iv_report import write_report
from keras_lstm_dssm.tables.table_iv_rows import TABLE_IV_ROWS
from keras_lstm_dssm.tables.table_settings import TableSettings

__all__ = [
    "KEYVEC_ROWS",
    "MV_LSTM_ROWS",
    "PAPERS",
    "PAPER_ALIASES",
    "TABLE_IV_ROWS",
    "FinishedSystems",
    "PaperTable",
    "Row",
    "Summary",
    "SystemResults",
    "TableData",
    "TableSettings",
    "check_pairs",
    "choose_rows",
    "make_table",
    "open_data",
    "open_table_data",
    "read_results",
    "reasons",
    "run_learning_curve",
    "run_system",
    "run_systems",
    "train_with_one_gamma",
    "write_keyvec_report",
    "write_mv_lstm_report",
    "write_overview",
    "write_report",
]
