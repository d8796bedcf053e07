"""The settings of the tables of each paper, and of a table of few clicks."""

from typing import Any

PAPER_OPTIONS: dict[str, dict[str, Any]] = {
    "table_iv": {
        "epochs": 30,
        "batch_size": 256,
        "min_relevant": 1,
        "depth": 1000,
        "learning_rates": (0.003, 0.01, 0.03, 0.1),
        "gammas": (5.0, 3.0, 10.0),
        "search": 0.15,
        "dev_evaluations": 5,
        "misspelled": (),
        "judged_negatives": 0,
        "paragraphs": None,
    },
    "mv_lstm": {
        "epochs": 7,
        "batch_size": 128,
        "min_relevant": 1,
        "learning_rates": (0.003, 0.01, 0.03, 0.1, 0.3),
        "search": 0.3,
        "dev_evaluations": 7,
        "misspelled": (),
        "select": None,
    },
    "keyvec": {
        "epochs": 30,
        "batch_size": 32,
        "min_relevant": 1,
        "learning_rates": (0.003,),
        "search": 0.5,
        "dev_evaluations": 4,
        "salience": "bm25",
    },
    "few_clicks": {
        "min_relevant": 1,
        "depth": 1000,
        "dev_evaluations": 6,
        "misspelled": (),
        "teacher": None,
    },
}
"""Name of a paper's tables -> the settings that a user can choose, with their
defaults."""

LEARNING_CURVES = ("table_iv", "few_clicks")
"""Names of papers whose tables `--pairs` extends by a learning curve: the same
systems, trained on parts of the clicks."""

PAPER_ALIASES = {"lstm_dssm": "table_iv"}
"""Another name that `--paper` takes -> the name in `PAPER_OPTIONS`."""
