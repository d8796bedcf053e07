"""The model of this package and its peers, behind one interface.

Each class of towers has `train(batches, steps)`, which returns the seconds of
a training step, and `encode(titles, batch_size)`, which returns vectors.
"""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

import keras_lstm_dssm as dssm
from keras_lstm_dssm.benchmarks import keras_towers
from keras_lstm_dssm.benchmarks.machine import StepWork, step_work
from keras_lstm_dssm.benchmarks.measurement import fit_seconds
from keras_lstm_dssm.benchmarks.optional_peer import optional_peer

PRESET = "lstm_96"
KERAS_FORMS = ("keras_segments", "keras_padded")
"""The two ways to sum an `Embedding` by word; `keras` is the faster one."""
TORCH_FORMS = {"torch_one_thread": 1, "torch_all_threads": None}
"""Name -> threads of an operation; `torch` is the faster one. Which one that
is depends on the processor."""


def new_model(cells: int) -> dssm.TwoTower:
    """Return a compiled LSTM-DSSM with in-batch negatives and Nesterov."""
    model = dssm.TwoTower.from_preset(
        PRESET, negatives="in_batch", encoder_config={"cells": cells}
    )
    model.compile(dssm.NesterovMomentum(0.1), dssm.CosineSoftmax(10.0))
    return model


class OwnTowers:
    """Runs `TwoTower` as its users do."""

    def __init__(self) -> None:
        self.model = new_model(keras_towers.CELLS)

    def train(self, batches: tf.data.Dataset, steps: int) -> float:
        """Return the seconds of a training step from strings to new weights."""
        return fit_seconds(self.model, batches, steps)

    def encode(self, titles: list[str], batch_size: int) -> Any:
        """Encode titles into `[len(titles), cells]`."""
        return self.model.document_encoder.encode(titles, batch_size)

    def work(self, query: tf.Tensor, document: tf.Tensor) -> StepWork:
        """Count the work of a training step on a batch of strings."""
        cell = self.model.query_encoder.lstm.cell
        return step_work(
            self.model.query_encoder.trigrams.distinct(query),
            self.model.document_encoder.trigrams.distinct(document),
            cell.units,
            len(cell.gates),
        )


def new_peers() -> dict[str, Any]:
    """Return the peers by name; print how to install those that are missing."""
    forms = (keras_towers.SegmentTower, keras_towers.PaddedTower)
    peers: dict[str, Any] = {
        name: keras_towers.KerasTowers(form)
        for name, form in zip(KERAS_FORMS, forms, strict=True)
    }
    optional: dict[str, Any] = {}
    with optional_peer("torch"):
        from keras_lstm_dssm.benchmarks.torch_towers import TorchTowers

        for name, threads in TORCH_FORMS.items():
            optional[name] = TorchTowers(threads)
    with optional_peer("jax"):
        from keras_lstm_dssm.benchmarks.jax_towers import JaxTowers

        optional["jax"] = JaxTowers()
    return optional | peers


def compared(rates: Mapping[str, float], unit: str) -> dict[str, Any]:
    """Return the rates, and ours divided by each of the others.

    Args:
        rates: Rates per second by name, `ours` among them.
        unit: Name of the rate in the result, such as `pairs_per_second`.

    Returns:
        `{name: {unit: rate}}`, with `keras` and `torch` for the faster of
        their forms, and `ratio_<name>` for each peer, above 1 where ours is
        faster.
        `ratio_exported` is the exported encoder's rate divided by ours.

    Example:
    >>> compared({"ours": 6.0, "jax": 2.0}, "pairs_per_second")
    {'ours': {'pairs_per_second': 6.0}, 'jax': {'pairs_per_second': 2.0}, \
'ratio_jax': 3.0}
    """
    rates = dict(rates)
    for peer, names in (("keras", KERAS_FORMS), ("torch", TORCH_FORMS)):
        forms = [rates[name] for name in names if name in rates]
        if forms:
            rates[peer] = max(forms)
    result: dict[str, Any] = {
        name: {unit: rate} for name, rate in rates.items()
    }
    for name, rate in rates.items():
        if name == "exported":
            result["ratio_exported"] = rate / rates["ours"]
        elif name != "ours":
            result[f"ratio_{name}"] = rates["ours"] / rate
    return result
