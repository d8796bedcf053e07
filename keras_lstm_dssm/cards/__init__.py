"""Cards: CARD.md of a run and of exported models, in the Hub's form."""

from keras_lstm_dssm.cards.figures import CardTable
from keras_lstm_dssm.cards.models_card import (
    models_card,
    refresh_models_card,
    write_models_card,
)
from keras_lstm_dssm.cards.run_card import run_card
from keras_lstm_dssm.cards.run_record import (
    card_tables,
    record_evaluation,
    record_training,
)
from keras_lstm_dssm.cards.spread import Spread, spread_of

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
