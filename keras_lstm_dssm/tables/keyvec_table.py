"""KEYVEC_TABLE: Tables 1 and 2 of Bi and Ma 2017."""

from keras_lstm_dssm.tables.keyvec_report import write_keyvec_report
from keras_lstm_dssm.tables.keyvec_rows import KEYVEC_ROWS
from keras_lstm_dssm.tables.paper_table import PaperTable, report_by

KEYVEC_TABLE = PaperTable(
    title="Tables 1 and 2 of Bi and Ma 2017",
    rows=KEYVEC_ROWS,
    options={
        "epochs": 20,
        "batch_size": 32,
        "min_relevant": 1,
        "learning_rates": (0.003,),
        "search": 0.5,
        "dev_evaluations": 4,
        "salience": "bm25",
    },
    fixed={"documents": True, "gammas": ()},
    report=report_by(write_keyvec_report),
)
