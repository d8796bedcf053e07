"""Table IV of Palangi et al. 2016 on any data set: train, measure, show."""

from keras_lstm_dssm.table_iv.dataset import DataSet, open_dataset
from keras_lstm_dssm.table_iv.isolated import run_isolated
from keras_lstm_dssm.table_iv.job import run_job
from keras_lstm_dssm.table_iv.pairs import check_pairs, learning_curve
from keras_lstm_dssm.table_iv.report import write_report
from keras_lstm_dssm.table_iv.results import Results, read_results
from keras_lstm_dssm.table_iv.rows import ROWS, choose_rows
from keras_lstm_dssm.table_iv.settings import Settings

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
