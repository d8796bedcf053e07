"""KEYVEC_TABLE: Tables 1 and 2 of Bi and Ma 2017."""

from keras_lstm_dssm.settings.papers import PAPER_OPTIONS
from keras_lstm_dssm.tables.keyvec_report import write_keyvec_report
from keras_lstm_dssm.tables.keyvec_rows import KEYVEC_ROWS
from keras_lstm_dssm.tables.paper_table import PaperTable, report_by

KEYVEC_TABLE = PaperTable(
    title="Tables 1 and 2 of Bi and Ma 2017",
    rows=KEYVEC_ROWS,
    options=PAPER_OPTIONS["keyvec"],
    fixed={"documents": True, "gammas": ()},
    report=report_by(write_keyvec_report),
)
