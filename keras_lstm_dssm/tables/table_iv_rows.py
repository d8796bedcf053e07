"""The rows of Table IV in the paper's order, and further rows."""

from keras_lstm_dssm.models import PRESETS
from keras_lstm_dssm.tables.rows import Row

_LSTM = PRESETS["lstm_96"]
_IN_BATCH = {"negatives": "in_batch"}
_PAPER = {
    "dssm": ("DSSM 288/96", (31.0, 34.4, 41.7)),
    "clsm_win1": ("CLSM 288/96, win=1", (31.8, 35.1, 42.6)),
    "clsm_win3": ("CLSM 288/96, win=3", (32.1, 35.2, 42.7)),
    "clsm_win5": ("CLSM 288/96, win=5", (32.0, 35.2, 42.6)),
    "rnn_288": ("RNN 288", (31.7, 35.0, 42.3)),
    "lstm_32": ("LSTM-RNN 32", (31.9, 35.5, 42.7)),
    "lstm_64": ("LSTM-RNN 64", (32.9, 36.3, 43.4)),
}

TABLE_IV_ROWS: dict[str, Row] = {
    "random": Row("Random order", seeded=False),
    "bm25": Row("BM25", (30.5, 32.8, 38.8), seeded=False),
    "ulm": Row("ULM, Dirichlet smoothing", (30.4, 32.7, 38.5), seeded=False),
    "plsa": Row("PLSA", (30.8, 33.7, 40.2)),
    "doc2vec": Row("Doc2Vec", (29.1, 31.8, 38.4)),
    "skip_thought": Row("Skip-Thought", (26.9, 29.7, 36.2)),
    **{
        name: Row(label, paper, PRESETS[name])
        for name, (label, paper) in _PAPER.items()
    },
    "lstm_96_n2": Row(
        "LSTM-RNN 96, n=2", (32.6, 36.0, 43.4), _LSTM.replace(n=2)
    ),
    "lstm_96": Row("LSTM-RNN 96, n=4", (33.1, 36.5, 43.6), _LSTM),
    "lstm_96_n6": Row(
        "LSTM-RNN 96, n=6", (33.1, 36.6, 43.6), _LSTM.replace(n=6)
    ),
    "lstm_96_n8": Row(
        "LSTM-RNN 96, n=8", (33.1, 36.4, 43.7), _LSTM.replace(n=8)
    ),
    "bilstm_96": Row(
        "Bi-LSTM-RNN 96", (33.2, 36.6, 43.6), PRESETS["bilstm_96"]
    ),
    "lstm_96_diagonal": Row(
        "LSTM-RNN 96, forget gate, diagonal peepholes",
        None,
        _LSTM.with_encoder(peephole="diagonal", forget_gate=True),
    ),
    "lstm_96_full": Row(
        "LSTM-RNN 96, forget gate, full peepholes",
        None,
        PRESETS["lstm_96_full"],
    ),
    "dssm_in_batch": Row(
        "DSSM 288/96, in-batch negatives",
        None,
        PRESETS["dssm"].replace(**_IN_BATCH),
    ),
    "clsm_win3_in_batch": Row(
        "CLSM 288/96, win=3, in-batch negatives",
        None,
        PRESETS["clsm_win3"].replace(**_IN_BATCH),
    ),
    "lstm_96_in_batch": Row(
        "LSTM-RNN 96, in-batch negatives", None, _LSTM.replace(**_IN_BATCH)
    ),
    "best": Row("Best (not of the paper)", None, PRESETS["best"], tuned=False),
}
"""Name -> row. Tuned rows have random negatives, as in the paper, unless the
label names others."""
