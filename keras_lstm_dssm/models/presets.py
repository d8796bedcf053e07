"""The systems of the paper by name, with the paper's sizes; and `best`."""

from typing import Any

from keras_lstm_dssm import encoders
from keras_lstm_dssm.errors import InputError

PRESETS: dict[str, tuple[type[encoders.TextEncoder], dict[str, Any]]] = {
    "lstm_32": (encoders.LSTMEncoder, {"cells": 32}),
    "lstm_64": (encoders.LSTMEncoder, {"cells": 64}),
    "lstm_96": (encoders.LSTMEncoder, {"cells": 96}),
    "lstm_96_full": (
        encoders.LSTMEncoder,
        {"cells": 96, "peephole": "full", "forget_gate": True},
    ),
    "bilstm_96": (encoders.BidirectionalLSTMEncoder, {"cells": 96}),
    "rnn_288": (encoders.RNNEncoder, {"units": 288}),
    "dssm": (encoders.DSSMEncoder, {"units": [288, 96]}),
    "clsm_win1": (encoders.CLSMEncoder, {"window": 1}),
    "clsm_win3": (encoders.CLSMEncoder, {"window": 3}),
    "clsm_win5": (encoders.CLSMEncoder, {"window": 5}),
    "best": (encoders.CombinedEncoder, {}),
}
"""Encoder class and arguments of each preset (Table IV of the paper)."""

_OF_DOCUMENTS: dict[str, dict[str, Any]] = {"best": {"length_norm": 0.5}}
"""Arguments that the document encoder of two towers has of its own."""

RECIPES: dict[str, dict[str, Any]] = {
    "best": {
        "equal_start": True,
        "negatives": "in_batch",
        "gamma": 16.0,
        "learning_rate": 0.03,
        "batch_size": 512,
        "epochs": 12,
        "title_pairs": 1,
        "hard_negatives": 1,
    },
}
"""Flags of `lstm-dssm-train` that belong to a preset: chosen on the dev splits
of four data sets; see docs/results/best.md."""


def preset_encoder(
    preset: str, of_documents: bool = False, **kwargs: Any
) -> encoders.TextEncoder:
    """Makes one encoder of a preset.

    Args:
        preset: A name in `PRESETS`.
        of_documents: Whether it is the document encoder of two towers.
        **kwargs: Arguments that override the preset's.

    Raises:
        InputError: There is no such preset.
    """
    if preset not in PRESETS:
        raise InputError(
            f"unknown preset {preset!r}; there are {', '.join(PRESETS)}"
        )
    encoder, arguments = PRESETS[preset]
    own = _OF_DOCUMENTS.get(preset, {}) if of_documents else {}
    return encoder(**{**arguments, **own, **kwargs})
