"""Trained: what training a system leaves, whatever the system is."""

from typing import Any, NamedTuple

from keras_lstm_dssm.evaluation import System

Options = dict[str, Any]
"""What is chosen on dev: `{"k1": 0.9, "b": 0.5, "tokenizer": "words"}`."""


class Trained(NamedTuple):
    """A system that is ready to be measured.

    Attributes:
        system: The system; None is random order, whose figures are exact.
        parameters: Numbers that it learnt; of one tower, as the paper counts.
        dev: Its figure on dev.
        train_seconds: Time it took to learn, without looks at dev.
        titles_per_second: Speed of its document encoder, where it has one.
        epoch: The epoch it is of, the best on dev, of those it was trained.
        history: A row for each epoch.
    """

    system: System | None
    parameters: int
    dev: float
    train_seconds: float = 0.0
    titles_per_second: float | None = None
    epoch: int | None = None
    history: tuple[dict[str, Any], ...] = ()
