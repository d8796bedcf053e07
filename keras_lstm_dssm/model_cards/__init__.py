"""Model cards: CARD.md of runs and of exported models, in the Hub's form."""

from keras_lstm_dssm.evaluation.significance import Spread, spread_of
from keras_lstm_dssm.model_cards.cards import CardTable, run_card
from keras_lstm_dssm.model_cards.record import (
    card_tables,
    models_card,
    record_evaluation,
    record_training,
    refresh_models_card,
    write_models_card,
)

__all__ = [
    "CardTable",
    "Spread",
    "card_tables",
    "models_card",
    "record_evaluation",
    "record_training",
    "refresh_models_card",
    "run_card",
    "spread_of",
    "write_models_card",
]
