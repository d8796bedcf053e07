"""PAPERS: the papers, and other comparisons, whose tables can be made."""

from keras_lstm_dssm.tables.few_clicks import FEW_CLICKS
from keras_lstm_dssm.tables.keyvec_table import KEYVEC_TABLE
from keras_lstm_dssm.tables.mv_lstm_table import MV_LSTM_TABLE
from keras_lstm_dssm.tables.paper_table import PaperTable
from keras_lstm_dssm.tables.table_iv import TABLE_IV

PAPERS: dict[str, PaperTable] = {
    "table_iv": TABLE_IV,
    "mv_lstm": MV_LSTM_TABLE,
    "keyvec": KEYVEC_TABLE,
    "few_clicks": FEW_CLICKS,
}
"""Name -> the tables of a paper."""
