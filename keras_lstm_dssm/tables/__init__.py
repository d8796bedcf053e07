"""Table IV of Palangi et al. 2016 on any data set: train, measure, show."""

from keras_lstm_dssm.tables.dataset import DataSet, open_dataset
from keras_lstm_dssm.tables.isolated import run_isolated
from keras_lstm_dssm.tables.job import run_job
from keras_lstm_dssm.tables.learning_curve import check_pairs, learning_curve
from keras_lstm_dssm.tables.rows import ROWS, choose_rows
from keras_lstm_dssm.tables.summary import Results, read_results
from keras_lstm_dssm.tables.table_report import write_report
from keras_lstm_dssm.tables.table_settings import Settings

__all__ = [
    "ROWS",
    "DataSet",
    "Results",
    "Settings",
    "check_pairs",
    "choose_rows",
    "learning_curve",
    "open_dataset",
    "read_results",
    "run_isolated",
    "run_job",
    "write_report",
]
