"""MV_LSTM_TABLE: Tables 2, 3 and 5 of Wan et al. 2016."""

from keras_lstm_dssm.settings.papers import PAPER_OPTIONS
from keras_lstm_dssm.tables.mv_lstm_report import write_mv_lstm_report
from keras_lstm_dssm.tables.mv_lstm_rows import MV_LSTM_ROWS
from keras_lstm_dssm.tables.paper_table import PaperTable, report_by

MV_LSTM_TABLE = PaperTable(
    title="Tables 2, 3 and 5 of Wan et al. 2016",
    rows=MV_LSTM_ROWS,
    options=PAPER_OPTIONS["mv_lstm"],
    fixed={"lists": True, "gammas": ()},
    report=report_by(write_mv_lstm_report),
)
