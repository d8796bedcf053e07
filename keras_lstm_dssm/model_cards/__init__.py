"""Model cards: CARD.md of runs and of exported models, in the Hub's form."""

from keras_lstm_dssm.model_cards.cards import models_card, run_card
from keras_lstm_dssm.model_cards.record import (
    record_evaluation,
    record_training,
    write_models_card,
)

__all__ = [
    "models_card",
    "record_evaluation",
    "record_training",
    "run_card",
    "write_models_card",
]
